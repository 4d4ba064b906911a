/** The timeline with what belongs to it: tools above, the plot, details below. */

import { useSignal } from "@preact/signals";
import { useMemo, useRef, useLayoutEffect, useState } from "preact/hooks";
import type {
  TraceResponse,
  TraceTrack,
  TraceRangeResponse,
} from "../../../api/types.gen";
import { useCommands } from "../../../base/use_commands";
import { originOf } from "../../../model/words/origin";
import { Waiting } from "../../../widgets/state/state";
import type { ViewProps } from "../../shared/view_props";
import { traceCommands, firstWindow, openPerfetto, rangeExport } from "./actions";
import { Details, hasDetails } from "./details";
import { MapStrip, useFamilies, useMap } from "./strip";
import {
  absolute,
  rangeWords,
  since,
  sliceWords,
  type TraceParams,
  useWindow,
  type Stretch,
  toggled,
  type SliceRef,
} from "./state/params";
import {
  layoutOf,
  pinnedTracks,
  tracksNamed,
  tracksQuery,
  type Layout,
  type NsRange,
} from "./plot/layout";
import { Plot } from "./plot/plot";
import { Legend, Toolbar } from "./head";
import { useChosen, useInstant, useInstants } from "./state/chosen";
import { useMoves, useSearch } from "./state/moves";
import type { Mark, Piece } from "./tiles/tile";
import { useTraceTiles } from "./tiles/loader";
import { summarySentence } from "./words";
import { RULER_PX } from "./paint/lines";
import type { Client } from "../../../api/client";
import { useOnce } from "../../../api/use_once";

const LEAST_PX = 300;

export interface TimelineProps {
  readonly view: ViewProps;
  readonly params: TraceParams;
  readonly answer: TraceResponse;
}

export function Timeline({ view, params, answer }: TimelineProps) {
  const { client, run, theme, byteUnit, setParams } = view;
  const { base, world, extent, layout, pinned, stamp } = useAxis(answer, params);
  const tiles = useTraceTiles(client, run.id, world, layout, stamp);
  const pinnedTiles = useTraceTiles(client, run.id, world, pinned, stamp);
  const { loader, version } = tiles;
  const cursor = useSignal<number | null>(null);
  const mark = useSignal<number | null>(null);
  const first = useMemo(
    () => firstWindow(answer, extent),
    [answer.focus?.startNs, answer.focus?.endNs, extent],
  );
  const window = useWindow(view, params.window, base, extent, first);
  const { shown, setWindow, fit } = window;
  const shownTracks = useMemo(
    () => tracksQuery(layout.rows.filter(({ track }) => holds(track))),
    [layout],
  );
  const marked = useMemo(
    () => tracksQuery(layout.rows.filter(({ hasMarks }) => hasMarks)),
    [layout],
  );
  const search = useSearch(client, run.id, shownTracks, params.find);
  const chosen = useChosen(client, run.id, params.slice, base);
  const instant = useInstant(client, run.id, params.instant, base);
  const instants = useInstants(client, run.id, marked);
  const { range } = params;
  const sums = useRangeSums(client, run.id, range, params.rangeTracks, shownTracks);
  const { find } = params;
  const moves = useMoves({
    view,
    answer,
    base,
    window,
    search,
    find,
    chosen,
    instant,
    instants,
    hasInstants: marked !== "",
  });

  const setRange = (low: number, high: number, tracks: string): void => {
    const words = { low: absolute(base, low), high: absolute(base, high) };
    setParams(rangeWords(words, tracks), "push");
  };
  const sumUp = (): void => {
    const { low, high } = shown.peek();
    setRange(Math.max(low, 0), Math.min(high, answer.endNs) + 1, "");
  };
  const setMark = (): void => {
    const { low, high } = shown.peek();
    const here = cursor.peek() ?? chosen.selected?.startNs ?? (low + high) / 2;
    const first = mark.peek();
    mark.value = first === null ? here : null;
    if (first === null) view.say("First mark set: press M again at the second");
    else setRange(Math.min(first, here), Math.max(first, here) + 1, "");
  };
  const clear = (): void => {
    if (mark.peek() !== null) mark.value = null;
    else if (params.slice !== null || params.instant !== null) {
      setParams(sliceWords(null));
    } else if (range !== null) setParams(rangeWords(null, ""));
    else if (find !== "") setParams({ find: null });
  };
  const searchBox = useRef<HTMLInputElement>(null);
  useCommands(view.commands, () =>
    traceCommands({
      window: shown.peek(),
      world: extent,
      setWindow,
      fit,
      search: () => {
        searchBox.current?.focus();
        searchBox.current?.select();
      },
      next: moves.next,
      step: moves.step,
      instant: moves.nextInstant,
      clear,
      perfetto: () => openPerfetto(answer, run, view.say),
      table: sumUp,
      mark: setMark,
      source: sums === null ? null : rangeExport(sums, originOf(run)),
      say: view.say,
    }),
  );

  const above = useRef<HTMLDivElement>(null);
  const tallPx = Math.max(LEAST_PX, usePlotHeight(above));
  const label = `Timeline of ${run.name}`;
  const { hits } = search;
  const hitsShift = hits === null ? 0 : since(base, BigInt(hits.t0));
  const map = useMap(loader, version, extent, theme, hits, hitsShift);
  const common = {
    answer,
    window: shown,
    world: extent,
    find,
    selected: chosen.selected ?? instant.place,
    related: chosen.related,
    arrows: chosen.arrows,
    range:
      range === null
        ? null
        : { low: since(base, range.low), high: since(base, range.high) },
    onSelect: (piece: Piece | null): void => {
      if (piece !== null) moves.choose(refOf(piece), false);
      else if (params.slice !== null || params.instant !== null)
        setParams(sliceWords(null));
    },
    onInstant: (mark: Mark): void => moves.chooseInstant(refOf(mark)),
    onZoomTo: setWindow,
    onRange: (next: NsRange, tracks: string): void => {
      const low = Math.floor(Math.max(next.low, extent.low));
      setRange(low, Math.ceil(Math.min(next.high, extent.high)), tracks);
    },
    onFit: fit,
    onFold: (key: string): void => setParams({ closed: toggled(params.closed, key) }),
    pins: params.pins,
    onPin: (key: string): void => setParams({ pins: toggled(params.pins, key) }),
    cursor,
    mark,
    theme,
    byteUnit,
    summary: summarySentence(answer),
    scrollTo: moves.scrollTo,
  };
  const pinnedPx = Math.min(pinned.totalPx, Math.round(tallPx * 0.45));
  const corner = (
    <>
      <input
        type="search"
        value={params.only}
        placeholder="Filter tracks"
        aria-label="Filter tracks by name"
        title="Show only tracks with these words in their names: stream, rank 1, memory"
        onInput={(event) => {
          const { value } = event.currentTarget;
          setParams({ tracks: value === "" ? null : value });
        }}
      />
      <span class="quiet">{answer.steps.number.length > 0 && "steps"}</span>
    </>
  );
  return (
    <section class="trace-view" aria-label="Timeline">
      <div class="trace-above" ref={above}>
        <Toolbar
          searchBox={searchBox}
          answer={answer}
          find={find}
          hits={hits}
          at={search.at}
          setFind={(text) => setParams({ find: text === "" ? null : text })}
          onNext={moves.next}
          onFit={fit}
          onZoom={(sign) => {
            const { low, high } = shown.peek();
            const by = ((high - low) * (sign < 0 ? -0.3 : 0.4)) / 2;
            setWindow({ low: low - by, high: high + by });
          }}
          onStep={moves.step}
          onInstant={marked === "" ? null : moves.nextInstant}
          onSumUp={sumUp}
        />
        <Waiting
          error={tiles.error}
          hasContent={version.value > 0}
          note="It is asked again by itself."
        />
        <MapStrip
          label={`${label}: all of the time`}
          map={map}
          extent={extent}
          shown={shown}
          setWindow={setWindow}
          fit={fit}
        />
      </div>
      <div class={`trace-stage${hasDetails(params) ? " has-dock" : ""}`}>
        <div class="trace-plots">
          {pinned.rows.length > 0 && (
            <Plot
              {...common}
              layout={pinned}
              loader={pinnedTiles.loader}
              version={pinnedTiles.version}
              heightPx={pinnedPx}
              label={`${label}: pinned tracks`}
              corner={corner}
            />
          )}
          <Plot
            {...common}
            layout={layout}
            loader={loader}
            version={version}
            heightPx={tallPx - pinnedPx}
            label={label}
            corner={pinned.rows.length > 0 ? null : corner}
          />
          {layout.rows.length === 0 && (
            <p class="quiet trace-none">No track is called “{params.only}”.</p>
          )}
        </div>
        <Details
          view={view}
          params={params}
          answer={answer}
          base={base}
          chosen={chosen}
          instant={instant}
          sums={sums}
          window={window}
          moves={moves}
          heightPx={tallPx + RULER_PX}
        />
      </div>
      <footer class="trace-foot">
        <span class="trace-summary quiet">{summarySentence(answer)}</span>
        <Legend families={useFamilies(loader, version)} theme={theme} />
      </footer>
    </section>
  );
}

/** What the address calls a drawn piece or mark. */
function refOf(drawn: { readonly trackKey: string; readonly row: number }): SliceRef {
  const { trackKey, row } = drawn;
  return { source: trackKey.slice(0, trackKey.lastIndexOf(":")), row };
}

/** Whether a track has anything that can be found. */
function holds(track: TraceTrack | null): boolean {
  return track !== null && track.numSlices + track.numInstants > 0;
}

interface Axis {
  readonly base: bigint;
  readonly world: {
    readonly base: bigint;
    readonly lowNs: number;
    readonly highNs: number;
  };
  readonly extent: NsRange;
  readonly layout: Layout;
  /** Of the tracks that stay at the top. */
  readonly pinned: Layout;
  /** Names what tiles are of. */
  readonly stamp: string;
}

/** The axis and the tracks, made again only where they are others. */
function useAxis(answer: TraceResponse, params: TraceParams): Axis {
  const base = useMemo(() => BigInt(answer.baseNs), [answer.baseNs]);
  const world = useMemo(() => {
    const slack = Math.max(10, answer.endNs * 0.004);
    return { base, lowNs: -slack, highNs: answer.endNs + slack };
  }, [base, answer.endNs]);
  const extent = useMemo(() => ({ low: world.lowNs, high: world.highNs }), [world]);
  const { closed, pins, only } = params;
  const words = [...closed, "", ...pins].join(",");
  const layout = useMemo(
    () => layoutOf(tracksNamed(answer, only), closed),
    [answer, words, only],
  );
  const pinned = useMemo(
    () => layoutOf(pinnedTracks(answer, pins), closed, true),
    [answer, words],
  );
  const stamp = useMemo(
    () =>
      JSON.stringify([
        answer.baseNs,
        answer.endNs,
        answer.sources.map(({ id, state, numSlices }) => [id, state, numSlices]),
      ]),
    [answer],
  );
  return { base, world, extent, layout, pinned, stamp };
}

/** The summary, and the page's own edge. */
const BELOW_PX = 60;

function usePlotHeight(above: { readonly current: HTMLElement | null }): number {
  const [px, setPx] = useState(480);
  useLayoutEffect(() => {
    const element = above.current;
    if (element === null) return undefined;
    const measure = (): void => {
      // A hidden TensorBoard tab has no size; keep the last one.
      if (window.innerHeight === 0) return;
      const page = document.getElementById("content")?.scrollTop ?? 0;
      const top = element.getBoundingClientRect().bottom + page;
      setPx(Math.round(window.innerHeight - top - RULER_PX - BELOW_PX));
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    window.addEventListener("resize", measure);
    return () => {
      observer.disconnect();
      window.removeEventListener("resize", measure);
    };
  }, [above]);
  return px;
}

/** `tracks` as the routes read them; of none that are chosen, all that are shown. */
function useRangeSums(
  client: Client,
  run: string,
  range: Stretch | null,
  tracks: string,
  shownTracks: string,
): TraceRangeResponse | null {
  return useOnce(
    client,
    "trace_range",
    range === null
      ? null
      : {
          run,
          tracks: tracks === "" ? shownTracks : tracks,
          t0: range.low.toString(),
          t1: range.high.toString(),
        },
  ).data;
}
