import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import type { TraceResponse, TraceSearchResponse } from "../../../../api/types.gen";
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
  stepBeside,
  tracksOf,
  windowOn,
  within,
  type Place,
} from "../plot/layout";
import { useWindow, wordsOf, type SliceRef } from "./params";
import { hitsOf, hitBeside, useSearch, useSlice, useSums } from "./selection";
import { useTracks, useWhole } from "./tracks";

export type Timeline = ReturnType<typeof useTimeline>;

export function useTimeline(view: ViewProps, answer: TraceResponse) {
  const { client, run, say } = view;
  const { baseNs, endNs, focus, steps } = answer;
  const base = useMemo(() => BigInt(baseNs), [baseNs]);
  const schema = useMemo(() => wordsOf(base), [base]);
  const [state, setState] = usePageState(view, schema);
  const extent = useMemo(() => {
    const slack = Math.max(10, endNs * 0.004);
    return { base, low: -slack, high: endNs + slack };
  }, [base, endNs]);
  const { find, range, rangeTracks } = state;
  const rangeKeys = useMemo(() => tracksOf(rangeTracks), [rangeTracks]);
  const { tracks, ...drawn } = useTracks(view, answer, state, extent);
  const { layout } = drawn;
  const whole = useWhole(view, answer, extent);
  const first = useMemo(
    () => firstWindow(focus, extent),
    [focus?.startNs, focus?.endNs, extent],
  );
  const { shown, setWindow } = useWindow(view, base, state.window, extent, first);
  const searchAnswer = useSearch(client, run.id, tracks, find);
  const { slice, selected, related, error } = useSlice(view, state.slice, base);
  const sums = useSums(view, state, tracks, base);
  /** Time under the pointer, over any plot of the page. */
  const cursor = useSignal<number | null>(null);
  /** The first of two marks. */
  const mark = useSignal<number | null>(null);
  const scrollTo = useSignal<Place | null>(null);
  const wantsSight = useRef(false);

  const show = (place: Place): void => {
    const next = windowOn(place, shown.peek());
    // The choice of the place has its entry in the history.
    if (next !== null) setWindow(next, "replace");
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

  const goTo = (search: TraceSearchResponse, sign: number, none: string): void => {
    const hit = hitBeside(hitsOf(search, base), state.slice, shown.peek().low, sign);
    if (hit === undefined) say(none);
    else {
      show(hit.place);
      choose(hit.ref);
    }
  };
  const next = (sign: number): void => {
    if (searchAnswer !== null) goTo(searchAnswer, sign, `No name contains “${find}”`);
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
  const zoom = (sign: number): void =>
    move((flat, limits) => zoomStep(flat, limits, sign, "x"));
  const pan = (sign: number): void =>
    move((flat, limits) => panStep(flat, limits, sign));
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
    ...drawn,
    rangeKeys,
    whole,
    searchAnswer,
    slice,
    sums,
    selected,
    related,
    error,
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
