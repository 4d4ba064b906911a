/** The whole recording in small above the timeline, and which kinds of work it holds. */

import { useMemo } from "preact/hooks";
import { Minimap } from "../../../../widgets/minimap/minimap";
import type { ViewProps } from "../../../shared/view_props";
import { NAMES_PX } from "../plot/names";
import { drawOverview, isAround, overviewOf, type Overview } from "./busy";
import { scaleWords } from "./scale";
import type { NsRange } from "../plot/place";
import type { useSearch } from "../state/search";
import type { useTraceTiles } from "../tiles/use_tiles";
import { formatNs } from "../words";

export function MapStrip(props: {
  readonly label: string;
  readonly map: TraceMap;
  readonly extent: NsRange;
  readonly shown: { value: NsRange };
  readonly setWindow: (window: NsRange) => void;
  readonly fit: () => void;
}) {
  const { extent } = props;
  const { low, high } = props.shown.value;
  const whole = low <= extent.low && high >= extent.high;
  return (
    <Minimap
      label={props.label}
      draw={props.map.draw}
      words={props.map.words}
      extent={extent}
      range={whole ? null : { low, high }}
      onRange={(range) => {
        if (range === null) props.fit();
        else props.setWindow(range);
      }}
      leftPx={NAMES_PX}
    />
  );
}

export interface TraceMap {
  readonly draw: (context: CanvasRenderingContext2D, widthPx: number) => void;
  /** What heights mean. */
  readonly words: (widthPx: number) => string;
}

export function useMap(
  loader: ReturnType<typeof useTraceTiles>["loader"],
  version: { readonly value: number },
  extent: NsRange,
  theme: ViewProps["theme"],
  hits: ReturnType<typeof useSearch>["hits"],
  hitsShift: number,
): TraceMap {
  // Read, so that tiles that arrive draw it again; most of them change nothing.
  const whole = version.value >= 0 ? loader.whole : null;
  const { low, high } = extent;
  const at = useMemo(() => {
    let known: { readonly widthPx: number; readonly overview: Overview } | null = null;
    return (widthPx: number): Overview | null => {
      if (whole === null) return null;
      if (known?.widthPx !== widthPx) {
        known = { widthPx, overview: overviewOf(whole, low, high, widthPx) };
      }
      return known.overview;
    };
  }, [whole, low, high]);
  const words = (widthPx: number): string => {
    const overview = at(widthPx);
    if (overview === null) return "";
    const { scale, totals } = overview;
    const columnNs = (high - low) / totals.length;
    return scaleWords(scale, (column) => formatNs((column + 0.5) * columnNs));
  };
  const draw = useMemo(
    () => (context: CanvasRenderingContext2D, widthPx: number) =>
      drawOverview(context, widthPx, at(widthPx), low, high, theme, hits, hitsShift),
    [at, theme, hits, hitsShift],
  );
  return { draw, words };
}

/** Kinds of work that are there, most of it first. */
export function useFamilies(
  loader: ReturnType<typeof useTraceTiles>["loader"],
  version: { readonly value: number },
) {
  const whole = version.value >= 0 ? loader.whole : null;
  return useMemo(() => {
    if (whole === null) return [];
    const sums = whole.answer.families.map((family) => ({ family, busy: 0 }));
    whole.answer.family.forEach((family, i) => {
      const sum = sums[family];
      if (sum !== undefined) sum.busy += whole.answer.busy[i] ?? 0;
    });
    return sums
      .filter(({ busy }) => busy > 0)
      .sort(
        (a, b) =>
          Number(isAround(a.family)) - Number(isAround(b.family)) || b.busy - a.busy,
      )
      .map(({ family }) => family);
  }, [whole]);
}
