/** Where each track lies: ranks, in them processes, in them tracks. In CSS px. Pure. */

import type { TraceResponse, TraceSteps, TraceTrack } from "../../../../api/types.gen";
import { formatInteger } from "../../../../base/bytes";
import { formatRankSet } from "../../../../model/words/rank_set";
import { columnLabel } from "../../../../model/words/column_label";
import type { XRange } from "../../../../widgets/plot/range";

export const LANE_PX = 16;
export const COUNTER_PX = 44;
const HEAD_PX = 24;
const GAP_PX = 6;

export interface Row {
  readonly kind: "rank" | "process" | "track";
  /** Stable: stands in the URL where it is folded. Of tracks `id:index`. */
  readonly key: string;
  readonly label: string;
  readonly hint: string;
  readonly y: number;
  readonly heightPx: number;
  readonly folded: boolean;
  /** Whether folding it hides anything. */
  readonly foldable: boolean;
  /** null: it is a heading. */
  readonly track: TraceTrack | null;
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

function trackLabel({ kind, unit, name }: TraceTrack): string {
  return kind === "counter" && unit !== null ? columnLabel(name) : name;
}

function trackHint(track: TraceTrack): string {
  const amounts = [
    [track.numSlices, "slices"],
    [track.numLevels, "levels"],
    [track.numInstants, "instants"],
  ] as const;
  const known = amounts.filter(([count]) => count > 0);
  const words = known.map(([count, what]) => `${what}: ${formatInteger(count)}`);
  return [track.process, trackLabel(track), ...words].join(" · ");
}

type Tracks = Pick<TraceResponse, "sources" | "tracks">;

/** Those whose names, with their process's and rank's, hold all of some words. */
export function tracksNamed({ sources, tracks }: Tracks, text: string): Tracks {
  const words = text
    .toLocaleLowerCase()
    .replace(/rank\s+/gu, "rank")
    .split(/\s+/u);
  const isNamed = (track: TraceTrack): boolean => {
    const { rank, process, name } = track;
    const all = [`rank${rank ?? ""}`, process, name, trackLabel(track)].join(" ");
    return words.every((word) => all.toLocaleLowerCase().includes(word));
  };
  return { sources, tracks: text === "" ? tracks : tracks.filter(isNamed) };
}

/** Those that are pinned, as keys with commas between them. */
export function pinnedTracks({ sources, tracks }: Tracks, pins: string): Tracks {
  const keys = pins.split(",");
  return { sources, tracks: tracks.filter(({ key }) => keys.includes(key)) };
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
      ...{ track: null, lanes: 0, hasMarks: false },
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
    // One of instants alone needs no lane of slices.
    const least = hasMarks ? 0 : 1;
    const lanes = isCounter ? 0 : Math.max(least, folded ? 1 : track.numLevels);
    const counterPx = folded ? LANE_PX : COUNTER_PX;
    const ofRank = flat && track.rank !== null ? `${track.rank}: ` : "";
    add({
      ...{ kind: "track", key, track, lanes, hasMarks },
      label: ofRank + trackLabel(track),
      hint: trackHint(track),
      heightPx: (isCounter ? counterPx : (lanes + Number(hasMarks)) * LANE_PX) + GAP_PX,
      foldable: isCounter || track.numLevels > 1,
    });
  }
  const tracks = rows.filter(({ track }) => track !== null);
  return { rows, totalPx: y, byTrack: new Map(tracks.map((row) => [row.key, row])) };
}

/** Rows that touch a stretch of heights. */
export function rowsBetween({ rows }: Layout, top: number, bottom: number) {
  return rows.filter(({ y, heightPx }) => y + heightPx > top && y < bottom);
}

/** The source's id of a track's key. */
export function sourceOf(trackKey: string): string {
  return trackKey.slice(0, trackKey.lastIndexOf(":"));
}

/** Tracks as the routes read them: `id:0-4,7;id:1`. */
export function tracksQuery(rows: readonly Row[]): string {
  const bySource = new Map<string, number[]>();
  for (const { key, track } of rows) {
    if (track === null) continue;
    const id = sourceOf(key);
    bySource.set(id, [...(bySource.get(id) ?? []), track.index]);
  }
  return [...bySource].map(([id, all]) => `${id}:${formatRankSet(all)}`).join(";");
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

/** A slice's place, in nanoseconds since the timeline's base: it is outlined there. */
export interface Place {
  readonly trackKey: string;
  readonly level: number;
  readonly startNs: number;
  readonly endNs: number;
}

/** A window around a stretch; `share` of it on either side. */
export function around(low: number, high: number, share: number): XRange {
  const slack = Math.max(LEAST_NS, (high - low) * share);
  return { low: low - slack, high: high + slack };
}

/** As wide a window as was asked for, moved to lie within what there is. */
export function within(next: XRange, extent: XRange): XRange {
  const whole = extent.high - extent.low;
  const span = Math.max(LEAST_NS, Math.min(next.high - next.low, whole));
  const middle = (next.low + next.high) / 2;
  const low = Math.min(Math.max(middle - span / 2, extent.low), extent.high - span);
  return { low, high: low + span };
}

/** The window in which a place can be seen and read; null where it can already. */
export function windowOn({ startNs, endNs }: Place, now: XRange): XRange | null {
  const span = now.high - now.low;
  const length = endNs - startNs;
  // An instant is as easy to see at any zoom.
  const tiny = length > 0 && length < span / 2000;
  if (startNs >= now.low && endNs <= now.high && !tiny) return null;
  const middle = (startNs + endNs) / 2;
  const wide = tiny ? Math.max(length * 40, LEAST_NS) : Math.max(span, length * 1.5);
  return { low: middle - wide / 2, high: middle + wide / 2 };
}

/** The step after (or before) a time, with a little around it. */
export function stepBeside(
  { startNs, endNs }: TraceSteps,
  ns: number,
  sign: number,
): XRange | null {
  const at =
    sign > 0
      ? startNs.findIndex((start) => start > ns)
      : endNs.findLastIndex((end) => end < ns);
  return at < 0 ? null : around(startNs[at] ?? 0, endNs[at] ?? 0, 0.08);
}
