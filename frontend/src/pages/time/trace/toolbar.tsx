/** Search, zoom and legend above the timeline. */

import type {
  TraceFamily,
  TraceResponse,
  TraceSearchResponse,
} from "../../../api/types.gen";
import type { Theme } from "../../../base/tokens";
import { Icon, type IconName } from "../../../widgets/icon/icon";
import { familyColour } from "../profiled/family_colours";
import { FAMILY_WORDS } from "./paint/colours";
import { hitWords } from "./words";

const MOST_FAMILIES = 9;

export interface ToolbarProps {
  readonly searchBox: { current: HTMLInputElement | null };
  readonly answer: TraceResponse;
  readonly find: string;
  readonly hits: TraceSearchResponse | null;
  readonly at: number | null;
  readonly setFind: (find: string) => void;
  readonly onNext: (sign: 1 | -1) => void;
  readonly onFit: () => void;
  readonly onZoom: (sign: 1 | -1) => void;
  readonly onStep: (sign: 1 | -1) => void;
  /** null where there are no instants. */
  readonly onInstant: ((sign: 1 | -1) => void) | null;
  readonly onSumUp: () => void;
  readonly theme: Theme;
  readonly families: readonly TraceFamily[];
}

export function Toolbar(props: ToolbarProps) {
  const { searchBox, answer, find, hits, at, theme, families, onInstant } = props;
  return (
    <div class="trace-bar">
      <div class="trace-search">
        <Icon name="search" sizePx={14} />
        <input
          ref={searchBox}
          type="search"
          value={find}
          placeholder="Find slices by name"
          aria-label="Find slices by name"
          title="Find slices by name (/)"
          onInput={(event) => props.setFind(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === "Enter") {
              event.preventDefault();
              props.onNext(event.shiftKey ? -1 : 1);
            } else if (event.key === "Escape") {
              props.setFind("");
              event.currentTarget.blur();
            } else return;
            event.stopPropagation();
          }}
        />
        {find !== "" && (
          <>
            <span class="trace-hits quiet" role="status">
              {hits === null ? "searching" : hitWords(at, hits.numHits)}
            </span>
            <Act
              icon="left"
              label="Previous that was found (Shift+Enter)"
              run={() => props.onNext(-1)}
            />
            <Act
              icon="right"
              label="Next that was found (Enter, N)"
              run={() => props.onNext(1)}
            />
          </>
        )}
      </div>
      <div class="trace-acts">
        <Act icon="plus" label="Zoom in (W)" run={() => props.onZoom(-1)} />
        <Act icon="minus" label="Zoom out (S)" run={() => props.onZoom(1)} />
        <Act icon="fit" label="Show everything (F)" run={props.onFit} />
        {answer.steps.number.length > 0 && (
          <>
            <Act icon="left" label="Previous step ([)" run={() => props.onStep(-1)} />
            <span class="quiet">step</span>
            <Act icon="right" label="Next step (])" run={() => props.onStep(1)} />
          </>
        )}
        {onInstant !== null && (
          <>
            <Act icon="left" label="Previous instant (,)" run={() => onInstant(-1)} />
            <span class="quiet">instant</span>
            <Act icon="right" label="Next instant (.)" run={() => onInstant(1)} />
          </>
        )}
        <button
          type="button"
          class="button"
          title="Sum up what is in sight by name, as a table (T). Shift and drag sums up a part."
          onClick={props.onSumUp}
        >
          <Icon name="table" sizePx={14} /> View as table
        </button>
      </div>
      <ul class="trace-legend" aria-label="Colours">
        {families.slice(0, MOST_FAMILIES).map((family) => (
          <li key={family}>
            <span
              class="row-table-swatch"
              style={{ background: familyColour(theme, family) }}
            />
            {FAMILY_WORDS[family]}
          </li>
        ))}
      </ul>
    </div>
  );
}

function Act(props: {
  readonly icon: IconName;
  readonly label: string;
  readonly run: () => void;
}) {
  return (
    <button
      type="button"
      class="icon-button small"
      aria-label={props.label}
      title={props.label}
      onClick={props.run}
    >
      <Icon name={props.icon} sizePx={14} />
    </button>
  );
}
