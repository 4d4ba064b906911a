/** What the picture shows: the search, and in a panel order, colours, axis and filter. */

import type { Signal } from "@preact/signals";
import type { HistoryDevice, HistoryFacts } from "../../../api/types.gen";
import { Icon } from "../../../widgets/icon/icon";
import { Popover } from "../../../widgets/menu/popover";
import { Choice, RowChoice, Segmented } from "../../shared/controls/choices";
import { viewWords, type SetParams } from "../history/params";
import { COLOURS, ordersOf, type AllocationsParams } from "./state/params";
import type { Found } from "./found";
import { COLOUR_WORDS, ORDER_WORDS, whyUntimed } from "./words";

export interface PictureBarProps {
  readonly facts: HistoryFacts;
  readonly device: HistoryDevice;
  readonly params: AllocationsParams;
  readonly setParams: SetParams;
  /** What a search found, or why it found nothing. */
  readonly found: Signal<Found>;
  readonly findBox: { current: HTMLInputElement | null };
}

export function PictureBar(props: PictureBarProps) {
  const { params, setParams } = props;
  return (
    <>
      <div class="allocations-find">
        <Icon name="search" />
        <input
          ref={props.findBox}
          type="text"
          aria-label="Find blocks by function, file, module or size"
          title="Words that a frame, file or module holds; frame: file: module: say where to look, - leaves out, >100MiB <1GiB are sizes"
          placeholder="Find: function, file, module, >100MiB"
          autocomplete="off"
          spellcheck={false}
          value={params.find}
          onInput={(event) => setParams({ find: event.currentTarget.value })}
          onKeyDown={(event) => {
            if (event.key !== "Escape") return;
            setParams({ find: null });
            event.currentTarget.blur();
            event.stopPropagation();
          }}
        />
        <FoundCount found={props.found} />
      </div>
      <Popover label="What the picture shows" button={shownWords(props)}>
        <ViewControls {...props} />
      </Popover>
    </>
  );
}

/** What differs from the picture that is shown first. */
function shownWords({ params, facts }: PictureBarProps): string {
  const { colour, order, axis, stream, pool } = params;
  const words = [
    `by ${COLOUR_WORDS[colour]}`,
    order === "allocation" ? "by allocation time" : "",
    axis === "time" ? "over time" : "",
    stream === null ? "" : `stream ${facts.streams[stream] ?? stream}`,
    pool === null ? "" : `pool ${facts.pools[pool] ?? pool}`,
  ];
  return `View: ${words.filter((word) => word !== "").join(", ")}`;
}

function FoundCount({ found }: Pick<PictureBarProps, "found">) {
  const { short, long } = found.value;
  return (
    <span class="quiet allocations-found" role="status" title={long} aria-label={long}>
      {short}
    </span>
  );
}

function ViewControls({ facts, device, params, setParams }: PictureBarProps) {
  const untimed = whyUntimed(device);
  return (
    <>
      <Segmented
        label="What lies on what"
        title="Stack"
        options={ordersOf(params.colour)}
        chosen={params.order}
        words={(order) => ORDER_WORDS[order]}
        onChoose={(order) => setParams({ order })}
      />
      <Choice
        label="Colour"
        value={params.colour}
        onChange={(colour) =>
          setParams({
            colour: colour === "category" ? null : colour,
            only: null,
            ...(params.order === "allocation" ? {} : { order: null }),
          })
        }
      >
        {COLOURS.map((colour) => (
          <option key={colour} value={colour}>
            {COLOUR_WORDS[colour]}
          </option>
        ))}
      </Choice>
      <Segmented
        label="Axis"
        title="Axis"
        options={["event", "time"] as const}
        chosen={untimed === "" ? params.axis : "event"}
        words={(axis) =>
          axis === "event"
            ? ["Events", "One after another: long kernels take no room"]
            : ["Time", untimed === "" ? "As the clock ran" : untimed]
        }
        disabled={(axis) => axis === "time" && untimed !== ""}
        onChoose={(axis) => {
          // A part of one axis says nothing about the other.
          setParams({
            ...viewWords(null, params.y),
            axis: axis === "event" ? null : axis,
          });
        }}
      />
      {params.axis === "time" && untimed !== "" && (
        <span class="quiet">No axis of time. {untimed}.</span>
      )}
      <RowChoice
        label="Stream"
        names={facts.streams}
        chosen={params.stream}
        onChoose={(stream) => setParams({ stream })}
      />
      <RowChoice
        label="Pool"
        names={facts.pools}
        chosen={params.pool}
        onChoose={(pool) => setParams({ pool })}
      />
    </>
  );
}
