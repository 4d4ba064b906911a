/** The Allocations page's words in the URL, read and checked. Pure. */

import type { AllocationColour, AllocationOrder } from "../../../../api/types.gen";
import type { FrameChoice } from "../../../../model/stacks/call_stacks";
import type { BlockAxisKind } from "../../../../widgets/block_stack/axis";
import type { XRange } from "../../../../widgets/line_chart/types";
import { readMemory, type MemoryWords } from "../../history/moment";
import { oneOf, VIEW_X, VIEW_Y, whole } from "../../history/params";
import { readRange } from "../../../shared/range/params";

/** What stands below the picture. */
export type FlameMode = "tree" | "sandwich" | "difference";

export interface AllocationsParams extends MemoryWords {
  readonly stream: number | null;
  readonly pool: number | null;
  readonly order: AllocationOrder;
  readonly colour: AllocationColour;
  readonly axis: BlockAxisKind;
  /** Key of the only group that keeps its colour; "" for all. */
  readonly only: string;
  /** The block whose card is open; null: none. */
  readonly life: number | null;
  /** The stack that is lit; null: none. */
  readonly stack: number | null;
  /** The moment that differences are taken against; null: none. */
  readonly mark: number | null;
  readonly frames: FrameChoice;
  readonly flame: FlameMode;
  /** The frame that is looked at from both sides; null: none. */
  readonly frame: number | null;
  /** The part in sight, in units of the axis; null: everything. */
  readonly x: XRange | null;
  /** Bytes in sight; null: all of them. */
  readonly y: XRange | null;
  /** The chosen range of events: from the first up to, without, the second. */
  readonly range: XRange | null;
}

const ORDERS: readonly AllocationOrder[] = ["category", "group", "allocation"];
export const COLOURS: readonly AllocationColour[] = [
  "category",
  "module",
  "stack",
  "age",
  "stream",
  "pool",
];
/** Of categories the colour and the category are the same order. */
export function ordersOf(colour: AllocationColour): readonly AllocationOrder[] {
  return colour === "category" ? ["category", "allocation"] : ORDERS;
}

const MODES: readonly FlameMode[] = ["tree", "sandwich", "difference"];
const FRAMES: readonly FrameChoice[] = ["user", "python", "all"];

export function readAllocations(
  params: ReadonlyMap<string, string>,
): AllocationsParams {
  const word = (name: string): string => params.get(name) ?? "";
  const colour = oneOf(COLOURS, word("colour"), "category");
  return {
    ...readMemory(params),
    stream: whole(params.get("stream")),
    pool: whole(params.get("pool")),
    // Colours are read most easily where each lies in one piece.
    order: oneOf(
      ordersOf(colour),
      word("order"),
      colour === "category" ? "category" : "group",
    ),
    colour,
    axis: word("axis") === "time" ? "time" : "event",
    only: word("only"),
    life: whole(params.get("life")),
    stack: whole(params.get("stack")),
    mark: whole(params.get("mark"), -1),
    frames: oneOf(FRAMES, word("frames"), "python"),
    flame: oneOf(MODES, word("flame"), "tree"),
    frame: whole(params.get("frame")),
    x: readRange(params, VIEW_X),
    y: readRange(params, VIEW_Y),
    range: readRange(params, { low: "r0", high: "r1" }),
  };
}
