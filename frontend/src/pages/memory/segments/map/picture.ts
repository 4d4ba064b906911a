import type { SegmentsResponse } from "../../../../api/types.gen";
import type { ByteUnit } from "../../../../base/bytes";
import type { Theme } from "../../../../base/tokens";
import type { SegmentLayout } from "./layout";

type SegmentFill = "category" | "state";

/** `SegmentBlocks.state`. */
export const STATE = { free: 0, allocated: 1, pending: 2 } as const;

/** Of blocks by state; free ones beside live ones are "split". */
export const COLOURS: Readonly<
  Record<Theme, Readonly<Record<"split" | "whole" | "allocated" | "pending", string>>>
> = {
  light: {
    split: "#c3c8ce",
    whole: "#e9ebee",
    allocated: "#1f6fc4",
    pending: "#e7ad51",
  },
  dark: {
    split: "#63676d",
    whole: "#464a4f",
    allocated: "#5aa7ee",
    pending: "#e2b84f",
  },
};

export interface MapPicture {
  readonly answer: SegmentsResponse;
  readonly layout: SegmentLayout;
  readonly fill: SegmentFill;
  readonly colours: readonly string[];
  readonly theme: Theme;
  readonly byteUnit: ByteUnit;
  readonly heightPx: number;
  readonly scrollPx: number;
}

/** `block & 1` selects the tone. */
export function blockColour(
  { answer: { blocks }, fill, colours, theme }: MapPicture,
  block: number,
): string {
  const own = COLOURS[theme];
  const colour = colours[blocks.category[block] ?? -1];
  if (blocks.state[block] === STATE.free) return own.split;
  if (fill === "category" && colour !== undefined) return colour;
  return blocks.state[block] === STATE.pending ? own.pending : own.allocated;
}
