import type { Finding, Place } from "../../api/types.gen";
import { formatInteger } from "../../base/bytes";

type Words = Readonly<Record<string, string | null>>;

export interface PlaceOpener {
  readonly chooseRank: (rank: number | null) => void;
  readonly showPage: (name: string, changes: Words) => void;
}

/** Parameters of Blocks and Segments that belong to the history shown before. */
export const OF_HISTORY: readonly string[] = [
  "h0",
  "h1",
  "b0",
  "b1",
  "r0",
  "r1",
  "life",
  "stack",
  "mark",
  "frame",
  "flame_zoom",
  "callers_zoom",
  "callees_zoom",
  "only",
  "stream",
  "pool",
  "s0",
  "s1",
];

/** Without a moment Blocks opens the device that ran out of memory. */
export function placeWords(place: Place): Words {
  if (place.page === "blocks") {
    const momentDevice = place.moment === null ? null : place.device;
    return {
      ...Object.fromEntries(OF_HISTORY.map((word) => [word, null])),
      history: place.history,
      history_device: momentDevice?.toString() ?? null,
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

export function whereParts(finding: Finding): readonly string[] {
  const number = (name: string, value: number | null): readonly string[] =>
    value === null ? [] : [`${name} ${formatInteger(value)}`];
  const file = finding.state?.origin === "file" ? finding.state.file : "";
  return [
    ...number("rank", finding.rank),
    // Most processes have one device.
    ...(finding.device === 0 && finding.rank !== null
      ? []
      : number("device", finding.device)),
    ...number("step", finding.step),
    // A recording's file is named for its rank, which is here already.
    ...[finding.during, finding.line, file].filter((word) => word !== ""),
  ];
}

/** Every second part is the blamed line. A text may name it without its function. */
export function apart(text: string, line: string): readonly string[] {
  const [place] = line.split(" ");
  if (place === undefined || place === "") return [text];
  const escaped = [line, place].map((literal) =>
    literal.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"),
  );
  // model.py:17 does not match model.py:177.
  return text.split(new RegExp(`((?:${escaped.join("|")})(?![\\d]))`));
}
