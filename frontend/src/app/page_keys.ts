/** The keys of pages, in the rail's order: the row of digits and the two keys after it. */

const KEYS = "1234567890-=";

/** null beyond the last: that page is opened from the rail and the palette. */
export function pageKey(index: number): string | null {
  return KEYS[index] ?? null;
}
