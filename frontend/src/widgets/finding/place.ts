/** Where a finding leads: a page, and what it is to show, as words of the URL. */

import type { Finding, Place } from "../../api/types.gen";
import { formatInteger } from "../../base/bytes";

type Words = Readonly<Record<string, string | null>>;

/** What a page offers to findings that it shows. */
export interface PlaceOpener {
  readonly chooseRank: (rank: number | null) => void;
  readonly showPage: (name: string, changes: Words) => void;
}

/** Words of Blocks that belonged to what it showed before. */
const OF_BEFORE = [
  ...["h0", "h1", "b0", "b1", "r0", "r1", "life", "stack", "mark", "frame", "only"],
  ...["stream", "pool"],
];

/**
 * Without a moment Blocks finds the device where memory ran out by itself.
 */
export function placeWords(place: Place): Words {
  if (place.page === "blocks") {
    const at = place.moment === null ? null : place.device;
    return {
      ...Object.fromEntries(OF_BEFORE.map((word) => [word, null])),
      history: place.history,
      history_device: at?.toString() ?? null,
      moment: place.moment?.toString() ?? null,
    };
  }
  if (place.page === "trace") return { source: place.source };
  return place.step === null ? {} : { step: place.step.toString() };
}

export function openPlace(place: Place, opener: PlaceOpener): void {
  if (place.rank !== null) opener.chooseRank(place.rank);
  opener.showPage(place.page, placeWords(place));
}

/** Rank, step and what was under way, as far as they are known. */
export function whereParts(one: Finding): readonly string[] {
  const number = (what: string, value: number | null): readonly string[] =>
    value === null ? [] : [`${what} ${formatInteger(value)}`];
  const file = one.state?.origin === "file" ? one.state.file : "";
  return [
    ...number("rank", one.rank),
    // Most processes have but one.
    ...(one.device === 0 && one.rank !== null ? [] : number("device", one.device)),
    ...number("step", one.step),
    // A recording's own file is named for the rank, which stands here already.
    ...[one.during, one.line, file].filter((word) => word !== ""),
  ];
}

/**
 * A text around the line that it blames, which is every second part. A sentence may name
 * the line without its function.
 */
export function apart(text: string, line: string): readonly string[] {
  const [place] = line.split(" ");
  if (place === undefined || place === "") return [text];
  const escaped = [line, place].map((one) =>
    one.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"),
  );
  // Not a line whose number goes on: model.py:17 is not in model.py:177.
  return text.split(new RegExp(`((?:${escaped.join("|")})(?![\\d]))`));
}
