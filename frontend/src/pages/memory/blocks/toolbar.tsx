/** What the picture shows: the search, and in a panel order, colours, axis and filter. */

import type { Signal } from "@preact/signals";
import { Icon } from "../../../widgets/icon/icon";
import { Popover } from "../../../widgets/menu/menu";
import { Choice, RowChoice, Segmented } from "../../shared/controls/choices";
import type { OpenHistory } from "../history/frame";
import type { Found } from "./search";
import {
  COLOURS,
  keysOf,
  orderOf,
  ORDERS,
  ordersOf,
  whyUntimed,
  type BlocksState,
} from "./state";

export interface PictureBarProps {
  readonly open: OpenHistory;
  readonly state: BlocksState;
  readonly set: (changes: Partial<BlocksState>) => void;
  /** What a search found, or why it found nothing. */
  readonly found: Signal<Found>;
}

export function PictureBar(props: PictureBarProps) {
  const { state, set } = props;
  return (
    <>
      <div class="find-blocks">
        <Icon name="search" />
        <input
          type="text"
          aria-label="Find blocks by function, file, module or size"
          title="Words that a frame, file or module holds; frame: file: module: say where to look, - leaves out, >100MiB <1GiB are sizes"
          placeholder="Find: function, file, module, >100MiB"
          autocomplete="off"
          spellcheck={false}
          value={state.find}
          onInput={(event) => set({ find: event.currentTarget.value })}
          onKeyDown={(event) => {
            if (event.key !== "Escape") return;
            set({ find: "" });
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
function shownWords({ state, open: { facts } }: PictureBarProps): string {
  const { stream, pool } = state;
  const words = [
    `by ${COLOURS[state.colour]}`,
    orderOf(state) === "allocation" ? "by allocation time" : "",
    state.axis === "time" ? "over time" : "",
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

function ViewControls({ open: { facts, device }, state, set }: PictureBarProps) {
  const untimed = whyUntimed(device);
  const order = orderOf(state);
  return (
    <>
      <Segmented
        label="What lies on what"
        title="Stack"
        options={ordersOf(state.colour)}
        chosen={order}
        words={(one) => ORDERS[one]}
        onChoose={(one) => set({ order: one })}
      />
      <Choice
        label="Colour"
        value={state.colour}
        onChange={(wanted) => {
          const colour = keysOf(COLOURS).find((one) => one === wanted) ?? "category";
          set({ colour, only: "", order: order === "allocation" ? order : null });
        }}
      >
        {keysOf(COLOURS).map((colour) => (
          <option key={colour} value={colour}>
            {COLOURS[colour]}
          </option>
        ))}
      </Choice>
      <Segmented
        label="Axis"
        title="Axis"
        options={["event", "time"] as const}
        chosen={untimed === "" ? state.axis : "event"}
        words={(axis) =>
          axis === "event"
            ? ["Events", "One after another: long kernels take no room"]
            : ["Time", untimed === "" ? "As the clock ran" : untimed]
        }
        disabled={(axis) => axis === "time" && untimed !== ""}
        // A part of one axis says nothing about the other.
        onChoose={(axis) => set({ x: null, axis })}
      />
      {state.axis === "time" && untimed !== "" && (
        <span class="quiet">No axis of time. {untimed}.</span>
      )}
      <RowChoice
        label="Stream"
        names={facts.streams}
        chosen={state.stream}
        onChoose={(row) => set({ stream: row === null ? null : Number(row) })}
      />
      <RowChoice
        label="Pool"
        names={facts.pools}
        chosen={state.pool}
        onChoose={(row) => set({ pool: row === null ? null : Number(row) })}
      />
    </>
  );
}
