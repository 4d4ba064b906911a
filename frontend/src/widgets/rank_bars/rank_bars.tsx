import { useMemo, useState } from "preact/hooks";
import { counted, formatBytes, type ByteUnit } from "../../base/bytes";
import { tokens, type Theme } from "../../base/tokens";
import { valueTicks } from "../../model/lines/axis";
import { LIMIT_WORDS } from "../../model/words/source_label";
import { AXIS_PX, type Picture } from "../plot/axes";
import { Plot, type PlotProps } from "../plot/plot";
import type { XRange } from "../plot/range";
import { onColumns, type Reader } from "../plot/reader";
import { membersAt, orderRanks, rankAxis, type Bars, type StripOrder } from "./bars";
import { paintBars, paintCrosses, type BarLine, type BarLook } from "./paint";

const TOP_PX = 18;
/** Below this share of the capacity the bars get the full height. */
const LEAST_SHARE = 0.15;
const HEADROOM = 1.06;

/** `exact`: after the value, fainter. */
export type RankFact = readonly [name: string, value: string, exact?: string];

interface RankBarsProps
  extends
    Pick<PlotProps, "bar" | "fileTable" | "label" | "origin" | "tableView" | "title">,
    Pick<BarLook, "filter" | "rank"> {
  readonly strip: Bars;
  readonly order: StripOrder;
  readonly facts: (i: number) => readonly RankFact[];
  readonly onPick: (rank: number) => void;
  readonly theme: Theme;
  readonly byteUnit: ByteUnit;
  readonly heightPx: number;
}

export function RankBars(props: RankBarsProps) {
  const { strip, order, rank, filter, theme, byteUnit } = props;
  const [range, setRange] = useState<XRange | null>(null);
  const places = useMemo(() => orderRanks(strip, order), [strip, order]);
  const { top, lines } = useMemo(
    () => heldAgainst(strip, byteUnit, theme),
    [strip, byteUnit, theme],
  );
  const picture = useMemo<Picture>(() => {
    const look = { strip, places, rank, filter, lines, theme };
    return {
      theme,
      grid: "y",
      axis: rankAxis(strip, places),
      yTicks: ({ y0 }, most) => valueTicks(0, y0, most, "bytes", byteUnit),
      paint: (pen, seen) => paintBars(pen, seen, look),
      over: (pen, seen) => paintCrosses(pen, seen, look),
    };
  }, [strip, places, rank, filter, lines, byteUnit, theme]);
  const columns = useMemo(
    () =>
      onColumns(() => ({
        x: Float64Array.from(places, (_, place) => place + 0.5),
        y: Float64Array.from(places, (i) => strip.peakBytes[i] ?? NaN),
      })),
    [strip, places],
  );
  const reader: Reader = {
    ...columns,
    read: (x, _, seen) => {
      const [i, ...others] = membersAt(strip, places, x, seen);
      if (i === undefined) return null;
      const text = `The highest of ${counted(others.length + 1, "rank")} here`;
      return {
        title: `Rank ${strip.rank[i] ?? "–"}`,
        notes: others.length > 0 ? [{ text, class: "quiet" }] : [],
        rows: props.facts(i).map(([name, value, exact]) => ({ name, value, exact })),
      };
    },
    pick: (x, _, seen) => {
      const [i] = membersAt(strip, places, x, seen);
      const picked = strip.rank[i ?? -1];
      if (picked !== undefined) props.onPick(picked);
    },
  };
  return (
    <Plot
      {...props}
      picture={picture}
      reader={reader}
      range={range}
      kind="rank-bars"
      subject={props.label}
      extent={{ low: 0, high: places.length }}
      onRange={setRange}
      y={[top, 0]}
      topPx={TOP_PX}
      plotPx={props.heightPx - TOP_PX - AXIS_PX}
      names={() => lines.map(({ label, colour, dash }) => ({ label, colour, dash }))}
      table={() => ({
        numRows: places.length,
        columns: [
          {
            name: "rank",
            values: Float64Array.from(places, (i) => strip.rank[i] ?? NaN),
          },
          { name: "bytes", values: columns.columns().y },
        ],
      })}
      about={() => ({ label: props.label, unit: "bytes" })}
      help={`${props.label}, ${counted(places.length, "rank")}. Arrow keys move from rank to rank, Enter opens a rank’s page, P goes to the highest, W and S zoom, F shows all.`}
    />
  );
}

function heldAgainst(
  { peakBytes, capacityBytes = new Float64Array(), capacityKind = "none" }: Bars,
  byteUnit: ByteUnit,
  theme: Theme,
): { readonly top: number; readonly lines: readonly BarLine[] } {
  const { text, secondary } = tokens(theme);
  const recordedPeaks = peakBytes.filter((value) => Number.isFinite(value)).sort();
  const highest = recordedPeaks.at(-1) ?? 0;
  const capacity = capacityBytes.reduce(
    (most, bytes) => (bytes > most ? bytes : most),
    0,
  );
  const isShown = capacity > 0 && highest >= capacity * LEAST_SHARE;
  const limitText = `${LIMIT_WORDS[capacityKind]} ${formatBytes(capacity, byteUnit)}`;
  const middle = (recordedPeaks.length - 1) / 2;
  const median =
    ((recordedPeaks[Math.floor(middle)] ?? NaN) +
      (recordedPeaks[Math.ceil(middle)] ?? NaN)) /
    2;
  const limit = {
    value: capacity,
    colour: text,
    dash: [6, 4],
    label: isShown ? limitText : `${limitText}, above the chart`,
  };
  const half = {
    value: median,
    colour: secondary,
    dash: [2, 3],
    label: `median ${formatBytes(median, byteUnit)}`,
  };
  return {
    top: HEADROOM * (isShown ? Math.max(capacity, highest) : highest) || 1,
    lines: [
      ...(capacity > 0 ? [limit] : []),
      ...(recordedPeaks.length > 2 ? [half] : []),
    ],
  };
}
