/** What the timeline is made of: files and recordings, how far they are, what is wrong. */

import type { ComponentChildren } from "preact";
import type {
  TraceChoice,
  TraceResponse,
  TraceSource,
  TraceFamily,
  TraceSearchResponse,
} from "../../../api/types.gen";
import { formatBytes, formatInteger } from "../../../base/bytes";
import { formatSeconds } from "../../../base/durations";
import { unrealOf } from "../../../model/words/origin";
import { Icon, type IconName } from "../../../widgets/icon/icon";
import { Menu } from "../../../widgets/menu/menu";
import { ProblemList } from "../../../widgets/problem_list/problem_list";
import { Choice } from "../../shared/controls/choices";
import type { ViewProps } from "../../shared/view_props";
import { fileUrl, mergedUrl, openPerfetto, sourceTitle } from "./actions";
import type { Theme } from "../../../base/tokens";
import { familyColour } from "../profiled/family_colours";
import { FAMILY_WORDS } from "./paint/quads";
import { focusWords, hitWords } from "./words";

const MOST_NAMED = 4;

export function Sources(props: {
  readonly answer: TraceResponse;
  readonly view: ViewProps;
  readonly tabs: ComponentChildren;
  readonly cycle: number | null;
}) {
  const { answer, view, cycle } = props;
  const { run } = view;
  const traces = answer.sources.filter(({ kind }) => kind !== "counters");
  const files = traces.filter(({ hasFile }) => hasFile);
  const cycles = cyclesOf(answer.choices);
  const failed = traces.flatMap(({ problem }) => (problem === null ? [] : [problem]));
  const problems = [...failed, ...answer.problems];
  return (
    <header class="trace-sources">
      <div class="trace-sources-row">
        {props.tabs}
        {traces.slice(0, MOST_NAMED).map((source) => (
          <OneSource key={source.id} source={source} />
        ))}
        {traces.length > MOST_NAMED && (
          <span class="quiet">and {traces.length - MOST_NAMED} more</span>
        )}
        {focusWords(answer.focus) !== "" && (
          <span class="quiet">{focusWords(answer.focus)}</span>
        )}
        {answer.shownRanks.length < answer.numRanks && (
          <span class="quiet">
            {answer.shownRanks.length} of {formatInteger(answer.numRanks)} ranks shown:
            choose others at the left
          </span>
        )}
        {cycles.length > 1 && (
          <Choice
            label="Cycle"
            value={cycle?.toString() ?? ""}
            onChange={(value) =>
              view.setParams(
                { cycle: value, w0: null, w1: null, slice: null, r0: null, r1: null },
                "push",
              )
            }
          >
            <option value="">newest</option>
            {cycles.map((one) => (
              <option key={one} value={one}>
                {one}
              </option>
            ))}
          </Choice>
        )}
        {unrealOf(run) !== null && <span class="quiet">{unrealOf(run)}</span>}
        {traces.length > 0 && (
          <span class="trace-files">
            <button
              type="button"
              class="button"
              title="In a tab of its own; the bytes go from this browser to that tab"
              onClick={() => openPerfetto(answer, run, view.say)}
            >
              Open in Perfetto
            </button>
            <Menu
              label="Download traces"
              empty="Nothing to download."
              items={[
                ...files.map((source) => ({
                  id: source.id,
                  label: `${sourceTitle(source)} (${formatBytes(source.numBytes)})`,
                  run: () => window.location.assign(fileUrl(run.id, source.id)),
                })),
                {
                  id: "merged",
                  label: "All ranks merged, on one clock",
                  run: () => window.location.assign(mergedUrl(run.id)),
                },
              ]}
            >
              <Icon name="download" />
            </Menu>
          </span>
        )}
      </div>
      {problems.length > 0 && <ProblemList problems={problems} />}
    </header>
  );
}

function cyclesOf(choices: readonly TraceChoice[]): readonly number[] {
  const found = new Set<number>();
  for (const { cycle } of choices) if (cycle !== null) found.add(cycle);
  return [...found].sort((a, b) => a - b);
}

function OneSource({ source }: { readonly source: TraceSource }) {
  const { state, progress, doing, clock, notes } = source;
  const facts = [
    `${formatInteger(source.numSlices)} slices`,
    ...(source.numBytes > 0 ? [formatBytes(source.numBytes)] : []),
    ...(clock === null ? [] : [clockWords(clock)]),
    ...notes,
  ];
  return (
    <span class="trace-source" title={facts.join("\n")}>
      {state === "failed" && <Icon name="warning" sizePx={14} />}
      {state === "ready" && notes.length > 0 && <Icon name="info" sizePx={14} />}
      <span class="trace-source-name">{sourceTitle(source)}</span>
      {state === "opening" && (
        <>
          <span class="quiet">{doing === "" ? "opening" : doing}</span>
          <progress max={1} value={progress} aria-label="Opening" />
        </>
      )}
      {state === "failed" && <span class="quiet">cannot be opened</span>}
    </span>
  );
}

function clockWords({
  method,
  offsetNs,
  errorNs,
}: NonNullable<TraceSource["clock"]>): string {
  if (method === "none")
    return "its times are no wall clock’s: put where the others begin";
  const moved =
    offsetNs === 0
      ? "clock as it is"
      : `clock moved by ${formatSeconds(offsetNs / 1e9)}`;
  return errorNs === null
    ? `${moved}, how far off is not known`
    : `${moved}, at most ${formatSeconds(errorNs / 1e9)} off (${method})`;
}

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
}

export function Toolbar(props: ToolbarProps) {
  const { searchBox, answer, find, hits, at, onInstant } = props;
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

/** What the colours mean. */
export function Legend(props: {
  readonly families: readonly TraceFamily[];
  readonly theme: Theme;
}) {
  return (
    <ul class="trace-legend" aria-label="Colours">
      {props.families.slice(0, MOST_FAMILIES).map((family) => (
        <li key={family}>
          <span
            class="row-table-swatch"
            style={{ background: familyColour(props.theme, family) }}
          />
          {FAMILY_WORDS[family]}
        </li>
      ))}
    </ul>
  );
}
