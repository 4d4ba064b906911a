import { Popover } from "../../../widgets/menu/menu";
import { Choice, RowChoice, Segmented } from "../../shared/controls/choices";
import { SearchBox } from "../../shared/controls/search_box";
import type { ViewProps } from "../../shared/view_props";
import {
  COLOURS,
  keysOf,
  orderOf,
  ORDERS,
  ordersOf,
  whyUntimed,
  type BlocksState,
} from "./state";
import type { OpenHistory } from "../history/use_history";

interface PictureBarProps {
  readonly view: ViewProps;
  readonly open: OpenHistory;
  readonly state: BlocksState;
  readonly set: (changes: Partial<BlocksState>) => void;
}

export function PictureBar(props: PictureBarProps) {
  const { view, state, set } = props;
  return (
    <span class="row end">
      <SearchBox
        label="Find blocks by function, file, module or size"
        hint="Words in a frame, file or module; frame: file: module: limit the search, - excludes, >100MiB <1GiB are sizes"
        placeholder="function, file, module, >100MiB"
        text={state.find}
        onText={(find) => set({ find })}
        commands={view.commands}
      />
      <Popover label="What the picture shows" button={shownWords(props)}>
        <ViewControls {...props} />
      </Popover>
    </span>
  );
}

function shownWords({ state, open: { facts } }: PictureBarProps): string {
  const { stream, pool } = state;
  const parts = [
    `by ${COLOURS[state.colour]}`,
    orderOf(state) === "allocation" ? "by allocation time" : "",
    state.axis === "time" ? "over time" : "",
    stream === null ? "" : `stream ${facts.streams[stream] ?? stream}`,
    pool === null ? "" : `pool ${facts.pools[pool] ?? pool}`,
  ];
  return `View: ${parts.filter((word) => word !== "").join(", ")}`;
}

function ViewControls({ open: { facts, device }, state, set }: PictureBarProps) {
  const untimed = whyUntimed(device);
  const order = orderOf(state);
  return (
    <>
      <Segmented
        label="Stacking order"
        title="Stack"
        options={ordersOf(state.colour)}
        chosen={order}
        labels={ORDERS}
        onChoose={(option) => set({ order: option })}
      />
      <Choice
        label="Colour"
        value={state.colour}
        of={Object.entries(COLOURS)}
        onChange={(wanted) => {
          const colour =
            keysOf(COLOURS).find((option) => option === wanted) ?? "category";
          set({ colour, only: "", order: order === "allocation" ? order : null });
        }}
      />
      <Segmented
        label="Axis"
        title="Axis"
        chosen={untimed === "" ? state.axis : "event"}
        labels={{
          event: ["Events", "The same width for every event"],
          time: ["Time", untimed === "" ? "Wall-clock time" : untimed],
        }}
        disabled={(axis) => axis === "time" && untimed !== ""}
        // A range on one axis means nothing on the other.
        onChoose={(axis) => set({ x: null, axis })}
      />
      {state.axis === "time" && untimed !== "" && (
        <span class="quiet">No time axis. {untimed}.</span>
      )}
      <RowChoice
        label="Stream"
        names={facts.streams}
        chosen={state.stream}
        onChoose={(stream) => set({ stream })}
      />
      <RowChoice
        label="Pool"
        names={facts.pools}
        chosen={state.pool}
        onChoose={(pool) => set({ pool })}
      />
    </>
  );
}
