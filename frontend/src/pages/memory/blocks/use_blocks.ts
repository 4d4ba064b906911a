import { useMemo } from "preact/hooks";
import type { Query } from "../../../api/client";
import type { HistoryDevice } from "../../../api/types.gen";
import { useLive } from "../../../api/live/use_live";
import { useCommands } from "../../../base/commands";
import { originOf } from "../../../model/words/origin";
import { BlockAxis } from "../../../widgets/block_stack/axis";
import { useBlockStage } from "../../../widgets/block_stack/block_stack";
import { drawnMarks } from "../../../widgets/block_stack/marks";
import type { BlockPicture } from "../../../widgets/block_stack/picture";
import type { BlockTile } from "../../../widgets/block_stack/tile";
import type { ViewProps } from "../../shared/view_props";
import { firstMoment, peakOf, pinnedMoment } from "../history/moment";
import { useCulprits, useStacks, type OpenHistory } from "../history/use_history";
import { pictureLabel } from "../history/text";
import { useTiles } from "../tiles/use_tiles";
import { blockActions, blockCommands } from "./actions";
import { stackFiles, type StackFile } from "./held/files";
import { heldColours, useHeld, type LiveStacks } from "./held/held";
import { useSearch } from "./search";
import { orderOf, type BlocksState } from "./state";

const HEADROOM = 1.08;
/** More reserved than this multiple of live bytes would flatten the blocks. */
const MOST_RESERVED = 1.7;
/** Device memory is drawn as a line below this multiple of the top. */
const MOST_CAPACITY = 1.3;

/** Bytes at the top of the picture; `part`: the whole tile of one stream or pool. */
export function topOf(device: HistoryDevice, part: BlockTile | null = null): number {
  const highest = (level: "active" | "reserved"): number =>
    part === null
      ? (peakOf(device, level)?.bytes ?? 0)
      : part.answer.columns[level].reduce(
          (high, bytes) => (bytes > high ? bytes : high),
          0,
        );
  const [active, reserved] = [highest("active"), highest("reserved")];
  let top = Math.max(active, 1);
  if (reserved <= MOST_RESERVED * active) top = Math.max(top, reserved);
  const capacity = device.capacityBytes ?? Infinity;
  if (capacity <= MOST_CAPACITY * top) top = Math.max(top, capacity);
  return top * HEADROOM;
}

export type Blocks = ReturnType<typeof useBlocks>;

export function useBlocks(view: ViewProps, params: BlocksState, open: OpenHistory) {
  const { client, theme, byteUnit, run } = view;
  const { answer, device, momentPlace } = open;
  const { stream, pool, colour } = params;
  const state = { ...params, moment: pinnedMoment(params, momentPlace) };
  const place: Query = { ...open.place, stream, pool };
  const axis = useMemo(() => new BlockAxis(device, state.axis), [device, state.axis]);
  const order = orderOf(state);
  const shown = useTiles(client, {
    kind: "allocations",
    place,
    axis: axis.kind,
    order,
    colour,
  });
  const { tiles } = shown;
  const [whole = null] = tiles;
  const ofPart = tiles.at(-1)?.answer.marks ?? null;
  const marks = useMemo(
    () => drawnMarks(device.marks, axis, ofPart),
    [device, axis, ofPart],
  );
  const { stacks, error: stacksError } = useStacks(client, run.id, momentPlace.history);
  const search = useSearch(state.find, stacks);
  const anchor = state.moment ?? firstMoment(device);
  const { mark } = state;
  const marked = useLive(
    client,
    "allocation_live",
    mark === null ? null : { ...place, moment: mark },
  ).data;
  const isPart = stream !== null || pool !== null;
  const topBytes = topOf(device, isPart ? whole : null);
  const culprits = useCulprits(view, answer.reference.rank);
  const { only, moment, life, stack, range } = state;
  const inRange = useLive(
    client,
    "allocation_range",
    range && { ...place, e0: range.low, e1: range.high },
  );
  const picture: BlockPicture = {
    device,
    axis,
    marks,
    topBytes,
    tiles,
    stacks,
    only,
    matches: search.blocks,
    culprits,
    moment,
    life,
    marked: mark,
    stack,
    theme,
    byteUnit,
    range: range && {
      low: axis.xAfter(range.low - 1),
      high: axis.xAfter(range.high - 1),
    },
  };
  const stage = useBlockStage(picture);
  const now = useHeld(client, place, anchor, stage, shown);
  const { anchored } = now;
  const colours = useMemo(
    () => heldColours(anchored, stacks, culprits, theme),
    [anchored?.categories.length, stacks, culprits, theme],
  );
  const exact =
    anchored === null || whole?.colour !== "category"
      ? null
      : new Map(anchored.categories.map(({ key, bytes }) => [key, bytes]));
  const actions = blockActions({ view, state, momentPlace, stage, marks, anchor });
  const label = pictureLabel("Active memory", open);
  const filesOf = (live: LiveStacks | null): readonly StackFile[] =>
    live === null || stacks === null
      ? []
      : stackFiles(live, stacks, state.frames, originOf(run), label);
  useCommands(view.commands, () =>
    blockCommands({ stage, view }, actions, filesOf(now.liveStacks.peek())),
  );
  return {
    view,
    state,
    open,
    device,
    momentPlace,
    place,
    order,
    shown,
    picture,
    label,
    stage,
    stacks,
    stacksError,
    search,
    anchor,
    culprits,
    colours,
    exact,
    actions,
    filesOf,
    ...now,
    inRange,
    before: marked !== null && marked.moment === mark ? marked : null,
  };
}
