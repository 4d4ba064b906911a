/** In the heading's font, with a margin. */
const LETTER_PX = 6.5;
const PADDING_PX = 12;
/** Of wide letters. */
const SPARE_PX = 4;
const SWATCH_PX = 14;
const ARROW_PX = 14;

export function headingLines(title: string): readonly string[] {
  return title.split("\n");
}

/** The last word on its own line: headings are often wider than their numbers. */
export function inTwoLines(title: string): string {
  return title.replace(/ (?=[^ ]+$)/, "\n");
}

/** CSS px at which no letter is cut, nor the arrow of the sort. */
export function headingWidth(title: string, hasSwatch: boolean): number {
  return narrowHeadingWidth(title, hasSwatch, true) + PADDING_PX;
}

/** Without a margin; `hasArrow`: with room for the arrow of the sort. */
export function narrowHeadingWidth(
  title: string,
  hasSwatch: boolean,
  hasArrow: boolean,
): number {
  const letters = Math.max(...headingLines(title).map(({ length }) => length));
  const besidePx = (hasArrow ? ARROW_PX : 0) + (hasSwatch ? SWATCH_PX : 0);
  return Math.ceil(letters * LETTER_PX) + SPARE_PX + besidePx;
}
