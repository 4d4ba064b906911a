import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Client } from "../../../../api/client";
import type {
  TracePartner,
  TraceResponse,
  TraceSearchResponse,
  TraceSliceResponse,
} from "../../../../api/types.gen";
import { useLive } from "../../../../api/use_live";
import { commandsOf, useCommands } from "../../../../base/commands";
import { panStep, zoomStep } from "../../../../render/gestures";
import type { Limits, Viewport } from "../../../../render/viewport";
import type { XRange } from "../../../../widgets/plot/range";
import { usePageState } from "../../../shared/page_state";
import type { ViewProps } from "../../../shared/view_props";
import { openPerfetto } from "../perfetto";
import {
  around,
  LEAST_NS,
  layoutOf,
  pinnedTracks,
  sourceOf,
  stepBeside,
  tracksNamed,
  tracksQuery,
  windowOn,
  within,
  type Place,
} from "../plot/layout";
import { tileQuery, useTraceTiles } from "../tiles/loader";
import { TraceTile } from "../tiles/tile";
import { absolute, since, useWindow, wordsOf, type SliceRef } from "./params";

/** Of the strip: finer than its columns. */
const OVERVIEW_PX = 1_200;

export type Timeline = ReturnType<typeof useTimeline>;

export function useTimeline(view: ViewProps, answer: TraceResponse) {
  const { client, run, say } = view;
  const { baseNs, endNs, focus, sources, steps } = answer;
  const base = useMemo(() => BigInt(baseNs), [baseNs]);
  const words = useMemo(() => wordsOf(base), [base]);
  const [state, setState] = usePageState(view, words);
  const extent = useMemo(() => {
    const slack = Math.max(10, endNs * 0.004);
    return { base, low: -slack, high: endNs + slack };
  }, [base, endNs]);
  const { closed, pins, only, find, range } = state;
  const layout = useMemo(
    () => layoutOf(tracksNamed(answer, only), closed),
    [answer, closed, only],
  );
  const pinned = useMemo(
    () => layoutOf(pinnedTracks(answer, pins), closed, true),
    [answer, closed, pins],
  );
  const made = sources.map(({ id, state: at, numSlices }) => [id, at, numSlices]);
  const stamp = JSON.stringify([baseNs, endNs, made]);
  const tiles = useTraceTiles(client, run.id, extent, layout, stamp);
  const pinnedTiles = useTraceTiles(client, run.id, extent, pinned, stamp);
  const first = useMemo(
    () => firstWindow(focus, extent),
    [focus?.startNs, focus?.endNs, extent],
  );
  const { shown, setWindow } = useWindow(view, base, state.window, extent, first);
  const tracks = useMemo(() => {
    const holdsAny = layout.rows.filter(({ lanes, hasMarks }) => lanes > 0 || hasMarks);
    return tracksQuery(holdsAny);
  }, [layout]);
  // All tracks, not only the visible ones: strip and legend stay as they are.
  const every = useMemo(
    () => tracksQuery(layoutOf(answer, "").rows.filter(({ lanes }) => lanes > 0)),
    [answer],
  );
  const overview = useLive(
    client,
    "trace_slices",
    every === ""
      ? null
      : tileQuery(run.id, base, every, { ...extent, px: OVERVIEW_PX }),
  ).data;
  const whole = useMemo(
    () => overview && new TraceTile(overview, base, extent.high, new Set()),
    [overview, extent],
  );
  const found = useSearch(client, run.id, tracks, find);
  const { data, error } = useLive(
    client,
    "trace_slice",
    state.slice && { run: run.id, ...state.slice },
  );
  // Until another slice loads the last answer is still here.
  const isOther =
    data?.source !== state.slice?.source || data?.row !== state.slice?.row;
  const slice = isOther ? null : data;
  const linked = useMemo(() => linkedOf(slice, base), [slice, base]);
  const { selected } = linked;
  const sums = useLive(
    client,
    "trace_range",
    range && {
      run: run.id,
      tracks: state.rangeTracks === "" ? tracks : state.rangeTracks,
      t0: absolute(base, range.low),
      t1: absolute(base, range.high),
    },
  ).data;
  /** Time under the pointer, over any plot of the page. */
  const cursor = useSignal<number | null>(null);
  /** The first of two marks. */
  const mark = useSignal<number | null>(null);
  const scrollTo = useSignal<Place | null>(null);
  const wantsSight = useRef(false);

  const show = (place: Place): void => {
    const next = windowOn(place, shown.peek());
    if (next !== null) setWindow(next);
    scrollTo.value = place;
  };
  const nothing = { slice: null, range: null, rangeTracks: "" };
  /** `reveal`: scrolls to it once its place is known. */
  const choose = (chosen: SliceRef | null, reveal = false): void => {
    wantsSight.current = reveal;
    setState({ ...nothing, slice: chosen }, "push");
  };
  useEffect(() => {
    if (selected === null || !wantsSight.current) return;
    wantsSight.current = false;
    show(selected);
  }, [selected]);
  const setRange = (low: number, high: number, of = ""): void =>
    setState({ ...nothing, range: { low, high }, rangeTracks: of }, "push");
  const close = (): void => setState(nothing);
  const fit = (): void => setWindow(extent);

  const goTo = (found: TraceSearchResponse, sign: number, none: string): void => {
    const hit = hitBeside(hitsOf(found, base), state.slice, shown.peek().low, sign);
    if (hit === undefined) say(none);
    else {
      show(hit.place);
      choose(hit.ref);
    }
  };
  const next = (sign: number): void => {
    if (found !== null) goTo(found, sign, `No name contains “${find}”`);
  };
  const hasInstants = layout.rows.some(({ hasMarks }) => hasMarks);
  const instant = (sign: number): void => {
    const none = "No instants were recorded";
    const query = { run: run.id, tracks, only: "instants" };
    if (!hasInstants) say(none);
    else
      client.get("trace_search", query).then(
        (all) => goTo(all, sign, none),
        () => say("The instants could not be read"),
      );
  };
  const step = (sign: number): void => {
    const { low, high } = shown.peek();
    const beside = stepBeside(steps, (low + high) / 2, sign);
    if (beside !== null) setWindow(beside);
    else say(steps.number.length === 0 ? "No steps are known" : "No further step");
  };
  const sumUp = (): void => {
    const { low, high } = shown.peek();
    setRange(Math.max(low, 0), Math.min(high, endNs) + 1);
  };
  const setMark = (): void => {
    const { low, high } = shown.peek();
    const here = cursor.peek() ?? selected?.startNs ?? (low + high) / 2;
    const from = mark.peek();
    mark.value = from === null ? here : null;
    if (from === null) say("First mark set: press M again at the second");
    else setRange(Math.min(from, here), Math.max(from, here) + 1);
  };
  const clear = (): void => {
    if (mark.peek() !== null) mark.value = null;
    else if (state.slice !== null || range !== null) close();
    else if (find !== "") setState({ find: "" });
  };
  const move = (by: (flat: Viewport, limits: Limits) => Viewport): void => {
    const flat = ({ low, high }: XRange) => ({ x0: low, x1: high, y0: 0, y1: 1 });
    const limits = { world: flat(extent), leastX: LEAST_NS, leastY: 1 };
    const { x0, x1 } = by(flat(shown.peek()), limits);
    setWindow({ low: x0, high: x1 });
  };
  const zoom = (sign: number): void => move((...at) => zoomStep(...at, sign, "x"));
  const pan = (sign: number): void => move((...at) => panStep(...at, sign));
  useCommands(view.commands, () =>
    commandsOf("trace", "Trace", [
      ["in", "Zoom in", () => zoom(-1), "w"],
      ["out", "Zoom out", () => zoom(1), "s"],
      ["left", "Pan to the left", () => pan(-1), "a"],
      ["right", "Pan to the right", () => pan(1), "d"],
      ["fit", "Show everything", fit, "f"],
      ["next", "Next that was found", () => next(1), "n"],
      ["before", "Previous that was found", () => next(-1)],
      ["later", "Next step", () => step(1), "]"],
      ["earlier", "Previous step", () => step(-1), "["],
      ["instant", "Next instant", () => instant(1), "."],
      ["instant_before", "Previous instant", () => instant(-1), ","],
      ["perfetto", "Open in Perfetto", () => openPerfetto(answer, run, say)],
      ["table", "Sum up what is in sight by name", sumUp, "t"],
      ["mark", "Set a mark; a second one measures between them", setMark, "m"],
      ["clear", "Clear selection", clear, "Escape"],
    ]),
  );
  return {
    view,
    answer,
    base,
    state,
    setState,
    extent,
    shown,
    setWindow,
    layout,
    pinned,
    tiles,
    pinnedTiles,
    whole,
    found,
    slice,
    sums,
    ...linked,
    error: data === null ? error : null,
    cursor,
    mark,
    scrollTo,
    choose,
    setRange,
    close,
    fit,
    zoom,
    next,
    step,
    instant,
    hasInstants,
    sumUp,
  };
}

export function firstWindow(focus: TraceResponse["focus"], extent: XRange): XRange {
  if (focus === null || focus.endNs <= focus.startNs) return extent;
  return within(around(focus.startNs, focus.endNs, 0.02), extent);
}

function linkedOf(slice: TraceSliceResponse | null, base: bigint) {
  if (slice === null) return { selected: null, related: [] };
  const placed = (
    { track, level, durationNs }: TraceSliceResponse | TracePartner,
    startNs: number,
  ) => ({ trackKey: track, level, startNs, endNs: startNs + durationNs });
  const startNs = since(base, slice.startNs);
  const related = slice.partners.map((one) => ({
    ...placed(one, startNs + one.startNs),
    outgoing: one.outgoing,
  }));
  return { selected: placed(slice, startNs), related };
}

export function hitsOf(found: TraceSearchResponse, base: bigint) {
  const shift = since(base, found.t0);
  return Array.from(found.row, (row, i) => {
    const startNs = (found.startNs[i] ?? 0) + shift;
    const endNs = startNs + (found.durationNs[i] ?? 0);
    const trackKey = found.tracks[found.track[i] ?? 0] ?? "";
    return {
      place: { trackKey, level: found.level[i] ?? 0, startNs, endNs },
      ref: { source: sourceOf(trackKey), row },
    };
  });
}

type Hits = ReturnType<typeof hitsOf>;

/** Below 0: none. */
export function hitOf(hits: Hits, slice: SliceRef | null): number {
  return hits.findIndex(
    ({ ref }) => ref.row === slice?.row && ref.source === slice.source,
  );
}

/** The hit after (or before) the chosen one, or a time; wraps around. */
export function hitBeside(
  hits: Hits,
  chosen: SliceRef | null,
  fromNs: number,
  sign: number,
): Hits[number] | undefined {
  const at = hitOf(hits, chosen);
  const after = hits.findIndex(({ place }) => place.startNs >= fromNs);
  const next = after < 0 ? hits.length : after;
  const to = at >= 0 ? at + sign : sign > 0 ? next : next - 1;
  return hits[(to + hits.length) % hits.length];
}

const PAUSE_MS = 250;

function useSearch(client: Client, run: string, tracks: string, find: string) {
  const [settled, setSettled] = useState(find);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(find), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [find]);
  const nothing = settled === "" || tracks === "";
  const query = nothing ? null : { run, tracks, text: settled };
  const { data } = useLive(client, "trace_search", query);
  return find === "" || nothing ? null : data;
}
