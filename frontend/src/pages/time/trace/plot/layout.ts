/** Where each track lies: ranks, in them processes, in them tracks. In CSS px. Pure. */

import type { TraceResponse, TraceTrack, TraceSteps } from "../../../../api/types.gen";
import { counted } from "../words";
import { columnLabel } from "../../../../model/words/column_label";

export const LANE_PX = 16;
export const COUNTER_PX = 44;
const HEAD_PX = 24;
const GAP_PX = 6;

export interface Row {
  readonly kind: "rank" | "process" | "track";
  /** Stable: stands in the URL where it is folded. */
  readonly key: string;
  readonly label: string;
  readonly hint: string;
  readonly y: number;
  readonly heightPx: number;
  readonly folded: boolean;
  /** Whether folding it hides anything. */
  readonly foldable: boolean;
  readonly track: TraceTrack | null;
  /** `id:index`; "" of headings. */
  readonly trackKey: string;
  /** Levels that are drawn. */
  readonly lanes: number;
  /** Whether instants have a lane above them. */
  readonly hasMarks: boolean;
}

export interface Layout {
  readonly rows: readonly Row[];
  readonly totalPx: number;
  /** Of tracks that are drawn. */
  readonly byTrack: ReadonlyMap<string, Row>;
}

function trackLabel(track: Pick<TraceTrack, "kind" | "unit" | "name">): string {
  return track.kind === "counter" && track.unit !== null
    ? columnLabel(track.name)
    : track.name;
}

function trackHint(track: TraceTrack): string {
  const { numSlices, numLevels, numInstants } = track;
  const own = `${track.process} · ${trackLabel(track)}`;
  if (track.kind === "counter") return own;
  const counts = [
    counted(numSlices, "slice"),
    counted(numLevels, "level"),
    ...(numInstants > 0 ? [counted(numInstants, "instant")] : []),
  ];
  return [own, ...counts].join(" · ");
}

type Tracks = Pick<TraceResponse, "sources" | "tracks">;

/** Those whose names, with their process's and rank's, hold all of some words. */
export function tracksNamed({ sources, tracks }: Tracks, text: string): Tracks {
  const words = text
    .toLocaleLowerCase()
    .replace(/rank\s+/gu, "rank")
    .split(/\s+/u);
  const named = ({ rank, process, ...track }: TraceTrack): boolean => {
    const name = [`rank${rank ?? ""}`, process, track.name, trackLabel(track)];
    const all = name.join(" ").toLocaleLowerCase();
    return words.every((word) => all.includes(word));
  };
  return { sources, tracks: text === "" ? tracks : tracks.filter(named) };
}

/** Those that are pinned, as keys with commas between them. */
export function pinnedTracks({ sources, tracks }: Tracks, pins: string): Tracks {
  const keys = pins.split(",");
  const key = ({ source, index }: TraceTrack) =>
    `${sources[source]?.id ?? ""}:${index}`;
  return { sources, tracks: tracks.filter((track) => keys.includes(key(track))) };
}

/**
 * Ranks in order; their tracks by source and process, as the server gives them. `closed`:
 * keys of what is folded. `flat`: without headings, so that each track names its rank.
 */
export function layoutOf(answer: Tracks, closed: string, flat = false): Layout {
  const rows: Row[] = [];
  const keys = closed.split(",");
  let y = 0;
  const add = (row: Omit<Row, "y" | "folded">): boolean => {
    const folded = keys.includes(row.key);
    rows.push({ ...row, y, folded });
    y += row.heightPx;
    return folded;
  };
  const head = (kind: "rank" | "process", key: string, label: string, hint: string) =>
    add({
      ...{ kind, key, label, hint, heightPx: HEAD_PX, foldable: true },
      ...{ track: null, trackKey: "", lanes: 0, hasMarks: false },
    });
  let rank: number | null | undefined;
  let process: string | null = null;
  let [rankFolded, processFolded] = [false, false];
  for (const track of answer.tracks) {
    const source = answer.sources[track.source];
    if (source === undefined) continue;
    if (!flat && track.rank !== rank) {
      rank = track.rank;
      process = null;
      const label = rank === null ? "Rank not known" : `Rank ${rank}`;
      if (rows.length > 0) y += GAP_PX;
      rankFolded = head("rank", `r${rank ?? ""}`, label, source.name);
    }
    if (rankFolded) continue;
    const name = `${source.id}/${track.process}`;
    if (!flat && name !== process) {
      process = name;
      const key = `p${source.id}.${track.index}`;
      processFolded = head("process", key, track.process, source.name);
    }
    if (processFolded) continue;
    const trackKey = `${source.id}:${track.index}`;
    const folded = keys.includes(trackKey);
    const counter = track.kind === "counter";
    const hasMarks = track.numInstants > 0;
    // One of instants alone needs no lane of slices.
    const least = hasMarks ? 0 : 1;
    const lanes = counter ? 0 : Math.max(least, folded ? 1 : track.numLevels);
    const counterPx = folded ? LANE_PX : COUNTER_PX;
    const ofRank = flat && track.rank !== null ? `${track.rank}: ` : "";
    add({
      kind: "track",
      key: trackKey,
      label: ofRank + trackLabel(track),
      hint: trackHint(track),
      heightPx: (counter ? counterPx : (lanes + Number(hasMarks)) * LANE_PX) + GAP_PX,
      foldable: counter || track.numLevels > 1,
      ...{ track, trackKey, lanes, hasMarks },
    });
  }
  const tracks = rows.filter(({ track }) => track !== null);
  const byTrack = new Map(tracks.map((row) => [row.trackKey, row]));
  return { rows, totalPx: y, byTrack };
}

/** Rows that touch a stretch of heights. */
export function rowsBetween(
  layout: Layout,
  top: number,
  bottom: number,
): readonly Row[] {
  return layout.rows.filter((row) => row.y + row.heightPx > top && row.y < bottom);
}

/** Tracks as the routes read them: `id:0-4,7;id:1`. */
export function tracksQuery(rows: readonly Row[]): string {
  const bySource = new Map<string, number[]>();
  for (const { trackKey, track } of rows) {
    if (track === null) continue;
    const id = trackKey.slice(0, trackKey.lastIndexOf(":"));
    const known = bySource.get(id);
    if (known === undefined) bySource.set(id, [track.index]);
    else known.push(track.index);
  }
  return [...bySource].map(([id, indices]) => `${id}:${spans(indices)}`).join(";");
}

function spans(indices: readonly number[]): string {
  const sorted = [...new Set(indices)].sort((a, b) => a - b);
  const parts: string[] = [];
  for (let i = 0; i < sorted.length;) {
    const first = sorted[i] ?? 0;
    let last = first;
    while (sorted[i + 1] === last + 1) {
      last += 1;
      i += 1;
    }
    i += 1;
    parts.push(first === last ? first.toString() : `${first}-${last}`);
  }
  return parts.join(",");
}

/** The top of a level of a track, or of its instants (below 0); null: not in the layout. */
export function laneTop(
  layout: Layout,
  trackKey: string,
  level: number,
): number | null {
  const row = layout.byTrack.get(trackKey);
  if (row === undefined) return null;
  if (level < 0) return row.y;
  const first = row.y + (row.hasMarks ? LANE_PX : 0);
  return first + Math.min(level, Math.max(0, row.lanes - 1)) * LANE_PX;
}

/** Ten nanoseconds over the whole width: no clock is finer. */
export const LEAST_NS = 10;

/** Nanoseconds since the timeline's base. */
export interface NsRange {
  readonly low: number;
  readonly high: number;
}

/** A slice's place: where it is outlined, and arrows begin and end. */
export interface Place {
  readonly trackKey: string;
  readonly level: number;
  readonly startNs: number;
  readonly endNs: number;
}

export interface Arrow {
  readonly from: Place;
  readonly to: Place;
}

/** A window around a stretch; `share` of it on either side. */
export function around(low: number, high: number, share: number): NsRange {
  const slack = Math.max(LEAST_NS, (high - low) * share);
  return { low: low - slack, high: high + slack };
}

/** As wide a window as was asked for, moved to lie within what there is. */
export function within(next: NsRange, extent: NsRange): NsRange {
  const whole = extent.high - extent.low;
  const span = Math.max(LEAST_NS, Math.min(next.high - next.low, whole));
  const middle = (next.low + next.high) / 2;
  const low = Math.min(Math.max(middle - span / 2, extent.low), extent.high - span);
  return { low, high: low + span };
}

/** The window in which a place can be seen and read; null where it can already. */
export function windowOn(place: Place, now: NsRange): NsRange | null {
  const span = now.high - now.low;
  const length = place.endNs - place.startNs;
  // An instant is as easy to see at any zoom.
  const tiny = length > 0 && length < span / 2000;
  if (place.startNs >= now.low && place.endNs <= now.high && !tiny) return null;
  const middle = (place.startNs + place.endNs) / 2;
  const wide = tiny ? Math.max(length * 40, LEAST_NS) : Math.max(span, length * 1.5);
  return { low: middle - wide / 2, high: middle + wide / 2 };
}

/** The step after (or before) a time, with a little around it. */
export function stepBeside(
  { startNs, endNs }: TraceSteps,
  ns: number,
  sign: number,
): NsRange | null {
  const at =
    sign > 0
      ? startNs.findIndex((start) => start > ns)
      : endNs.findLastIndex((end) => end < ns);
  if (at < 0) return null;
  const [low, high] = [startNs[at] ?? 0, endNs[at] ?? 0];
  const slack = (high - low) * 0.08;
  return { low: low - slack, high: high + slack };
}
