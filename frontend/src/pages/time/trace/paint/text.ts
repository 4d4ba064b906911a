/** Words on a canvas: how wide they are, and as much of them as fits. */

export const FONT = "11px Roboto, Helvetica, Arial, sans-serif";

const widths = new Map<string, number>();

export function widthOf(context: CanvasRenderingContext2D, text: string): number {
  const known = widths.get(text);
  if (known !== undefined) return known;
  const width = context.measureText(text).width;
  if (widths.size > 20_000) widths.clear();
  widths.set(text, width);
  return width;
}

/** As much of a text as fits; "" where that says nothing. */
export function fitting(text: string, wide: number, room: number): string {
  if (wide <= room) return text;
  const letters = Math.floor((room - 8) / (wide / Math.max(1, text.length)));
  return letters < 3 ? "" : `${text.slice(0, letters).trimEnd()}…`;
}
