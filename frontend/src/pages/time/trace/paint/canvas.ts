import type { RectPx, Viewport } from "../../../../render/viewport";
import { cutMiddle } from "../../../shared/table/kernel_name";
import type { Layout } from "../plot/layout";
import type { Timeline } from "../state/timeline";
import type { Piece } from "../tiles/tile";
import type { Picture } from "./quads";

export interface Canvas {
  readonly context: CanvasRenderingContext2D;
  readonly trace: Timeline;
  readonly layout: Layout;
  readonly picture: Picture;
  readonly hovered: Piece | null;
  readonly box: RectPx | null;
  readonly view: Viewport;
  readonly widthPx: number;
  readonly heightPx: number;
  readonly toX: (ns: number) => number;
}

/** Half of an instant's width. */
export const MARK_PX = 5;

const widths = new Map<string, number>();

export function widthOf(context: CanvasRenderingContext2D, text: string): number {
  const cachedWidth = widths.get(text);
  if (cachedWidth !== undefined) return cachedWidth;
  const width = context.measureText(text).width;
  if (widths.size > 20_000) widths.clear();
  widths.set(text, width);
  return width;
}

/** Cut in the middle where it does not fit; "" where that is meaningless. */
export function fitting(text: string, wide: number, room: number): string {
  if (wide <= room) return text;
  const letters = Math.floor((room - 8) / (wide / Math.max(1, text.length)));
  return letters < 3 ? "" : cutMiddle(text, letters + 1);
}
