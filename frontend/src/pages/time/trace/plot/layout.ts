/** Positions in CSS px: ranks, in them processes, in them tracks. */

import type { TraceResponse, TraceSteps, TraceTrack } from "../../../../api/types.gen";
import { formatInteger } from "../../../../base/bytes";
import { formatRankSet, parseRankSet } from "../../../../model/words/rank_set";
import type { XRange } from "../../../../widgets/plot/range";

export const LANE_PX = 16;
export const COUNTER_PX = 44;
const HEAD_PX = 24;
const GAP_PX = 6;

export interface Row {
  readonly kind: "rank" | "process" | "track";
  /** Stable: the URL names folded rows by it. Of tracks `id:index`. */
  readonly key: string;
  readonly label: string;
  readonly hint: string;
  readonly y: number;
  readonly heightPx: number;
  readonly folded: boolean;
  readonly foldable: boolean;
  /** null: a heading. */
  readonly track: TraceTrack | null;
  readonly lanes: number;
  /** Whether instants have a lane above the others. */
  readonly hasMarks: boolean;
}

export interface Layout {
  readonly rows: readonly Row[];
  readonly totalPx: number;
  /** Drawn tracks only. */
  readonly byTrack: ReadonlyMap<string, Row>;
}

function trackHint(track: TraceTrack): string {
  const amounts = [
    [track.numSlices, "slices"],
    [track.numLevels, "levels"],
    [track.numInstants, "instants"],
  ] as const;
  const recorded = amounts.filter(([count]) => count > 0);
  const counts = recorded.map(([count, noun]) => `${noun}: ${formatInteger(count)}`);
  return [track.process, track.name, ...counts].join(" · ");
}

type Tracks = Pick<TraceResponse, "sources" | "tracks">;

/** Tracks whose name, process and rank contain all words. */
export function tracksNamed({ sources, tracks }: Tracks, text: string): Tracks {
  const typedWords = text
    .toLocaleLowerCase()
    .replace(/rank\s+/gu, "rank")
    .split(/\s+/u);
  const isNamed = (track: TraceTrack): boolean => {
    const { rank, process, name } = track;
    const all = `rank${rank ?? ""} ${process} ${name}`;
    return typedWords.every((word) => all.toLocaleLowerCase().includes(word));
  };
  return { sources, tracks: text === "" ? tracks : tracks.filter(isNamed) };
}

/** `pins`: keys with commas between them. */
export function pinnedTracks({ sources, tracks }: Tracks, pins: string): Tracks {
  const keys = pins.split(",");
  return { sources, tracks: tracks.filter(({ key }) => keys.includes(key)) };
}

/**
 * Ranks in order; tracks by source and process as the server returns them. `closed`:
 * keys of folded rows. `flat`: without headings, so each track names its rank.
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
      kind,
      key,
      label,
      hint,
      heightPx: HEAD_PX,
      foldable: true,
      track: null,
      lanes: 0,
      hasMarks: false,
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
    const { key } = track;
    const folded = keys.includes(key);
    const isCounter = track.kind === "counter";
    const hasMarks = track.numInstants > 0;
    // Instants alone need no lane of slices.
    const least = hasMarks ? 0 : 1;
    const lanes = isCounter ? 0 : Math.max(least, folded ? 1 : track.numLevels);
    const counterPx = folded ? LANE_PX : COUNTER_PX;
    const ofRank = flat && track.rank !== null ? `${track.rank}: ` : "";
    add({
      kind: "track",
      key,
      track,
      lanes,
      hasMarks,
      label: ofRank + track.name,
      hint: trackHint(track),
      heightPx: (isCounter ? counterPx : (lanes + Number(hasMarks)) * LANE_PX) + GAP_PX,
      foldable: isCounter || track.numLevels > 1,
    });
  }
  const tracks = rows.filter(({ track }) => track !== null);
  return { rows, totalPx: y, byTrack: new Map(tracks.map((row) => [row.key, row])) };
}

export function rowsBetween({ rows }: Layout, top: number, bottom: number) {
  return rows.filter(({ y, heightPx }) => y + heightPx > top && y < bottom);
}

export function sourceOf(trackKey: string): string {
  return trackKey.slice(0, trackKey.lastIndexOf(":"));
}

/** In the routes' syntax: `id:0-4,7;id:1`. */
export function tracksQuery(rows: readonly Row[]): string {
  const bySource = new Map<string, number[]>();
  for (const { key, track } of rows) {
    if (track === null) continue;
    const id = sourceOf(key);
    bySource.set(id, [...(bySource.get(id) ?? []), track.index]);
  }
  return [...bySource].map(([id, all]) => `${id}:${formatRankSet(all)}`).join(";");
}

/** Keys of the tracks that `tracksQuery` wrote. */
export function tracksOf(query: string): ReadonlySet<string> {
  const keys = query.split(";").flatMap((part) => {
    const id = sourceOf(part);
    const indices = parseRankSet(part.slice(id.length + 1));
    return indices.ok ? indices.ranks.map((index) => `${id}:${index}`) : [];
  });
  return new Set(keys);
}

/** Levels below 0 are instants; null: not in the layout. */
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

/** The narrowest window: no clock is finer than ten nanoseconds. */
export const LEAST_NS = 10;

/** In nanoseconds since the timeline's base. */
export interface Place {
  readonly trackKey: string;
  readonly level: number;
  readonly startNs: number;
  readonly endNs: number;
}

/** `share`: the margin per side. */
export function around(low: number, high: number, share: number): XRange {
  const slack = Math.max(LEAST_NS, (high - low) * share);
  return { low: low - slack, high: high + slack };
}

/** Moves a window into the extent; its width stays. */
export function within(next: XRange, extent: XRange): XRange {
  const whole = extent.high - extent.low;
  const span = Math.max(LEAST_NS, Math.min(next.high - next.low, whole));
  const middle = (next.low + next.high) / 2;
  const low = Math.min(Math.max(middle - span / 2, extent.low), extent.high - span);
  return { low, high: low + span };
}

/** A window in which the place is readable; null: it already is. */
export function windowOn({ startNs, endNs }: Place, now: XRange): XRange | null {
  const span = now.high - now.low;
  const length = endNs - startNs;
  // An instant is visible at any zoom.
  const tiny = length > 0 && length < span / 2000;
  if (startNs >= now.low && endNs <= now.high && !tiny) return null;
  const middle = (startNs + endNs) / 2;
  const wide = tiny ? Math.max(length * 40, LEAST_NS) : Math.max(span, length * 1.5);
  return { low: middle - wide / 2, high: middle + wide / 2 };
}

/** With a margin around it. */
export function stepBeside(
  { startNs, endNs }: TraceSteps,
  ns: number,
  sign: number,
): XRange | null {
  const index =
    sign > 0
      ? startNs.findIndex((start) => start > ns)
      : endNs.findLastIndex((end) => end < ns);
  return index < 0 ? null : around(startNs[index] ?? 0, endNs[index] ?? 0, 0.08);
}
