/** Free blocks by size, with a request beside them: what would have had to be there. */

import { useState } from "preact/hooks";
import type { FreeSizes, SegmentRequest } from "../../../api/types.gen";
import {
  formatBytes,
  formatBytesExact,
  formatInteger,
  type ByteUnit,
} from "../../../base/bytes";
import type { Table } from "../../../model/table";
import { DataTable } from "../../../widgets/export/data_table";
import { ChartButton } from "../../../widgets/line_chart/chart_button";

const HEIGHT_PX = 120;
const LABELS_PX = 18;
const TOP_PX = 16;

export function FreeHistogram(props: {
  readonly sizes: FreeSizes;
  readonly request: SegmentRequest | null;
  readonly byteUnit: ByteUnit;
}) {
  const { sizes, request, byteUnit } = props;
  const [asTable, setAsTable] = useState(false);
  const { bars, marked, ticks, mostBytes } = histogramBars(sizes, request);
  const blocks = bars.reduce((sum, bar) => sum + bar.numSplit + bar.numWhole, 0);
  const summary =
    blocks === 0
      ? "No block is free"
      : `${formatInteger(blocks)} free blocks, ${formatBytes(
          bars.reduce((sum, bar) => sum + bar.splitBytes + bar.wholeBytes, 0),
          byteUnit,
        )}`;
  const scale = (HEIGHT_PX - TOP_PX) / Math.max(mostBytes, 1);
  return (
    <section class="segments-card" aria-label="Free blocks by size">
      <div class="panel-head">
        <h2>Free blocks by size</h2>
        <span class="quiet segments-fill">{summary}</span>
        <ChartButton
          label={asTable ? "View as picture" : "View as table"}
          icon={asTable ? "chart" : "table"}
          onClick={() => setAsTable(!asTable)}
        />
      </div>
      {asTable ? (
        <DataTable
          label="Free blocks by size"
          table={histogramTable(sizes)}
          heightPx={HEIGHT_PX + LABELS_PX}
        />
      ) : (
        <svg
          class="free-histogram"
          viewBox={`0 0 320 ${HEIGHT_PX + LABELS_PX}`}
          role="img"
          aria-label={summary}
        >
          <defs>
            <pattern
              id="free-split"
              width="4"
              height="4"
              patternUnits="userSpaceOnUse"
              patternTransform="rotate(45)"
            >
              <rect width="4" height="4" class="free-base" />
              <line x1="0" y1="0" x2="0" y2="4" class="free-line" />
            </pattern>
          </defs>
          {bars.map((bar) => {
            const split = bar.splitBytes * scale;
            const whole = bar.wholeBytes * scale;
            const drawn = bar.numSplit + bar.numWhole > 0;
            return (
              <g key={bar.fromBytes}>
                {drawn && (
                  <>
                    <rect
                      x={bar.x}
                      y={HEIGHT_PX - Math.max(split, 1)}
                      width={bar.width}
                      height={Math.max(split, 1)}
                      fill="url(#free-split)"
                    />
                    <rect
                      x={bar.x}
                      y={HEIGHT_PX - split - whole}
                      width={bar.width}
                      height={whole}
                      class="free-whole"
                    />
                  </>
                )}
                <rect
                  x={bar.x}
                  y="0"
                  width={bar.width + 1}
                  height={HEIGHT_PX}
                  fill="transparent"
                >
                  <title>
                    {`${formatBytes(bar.fromBytes)} to ${formatBytes(2 * bar.fromBytes)}: ${formatInteger(bar.numSplit)} beside live blocks (${formatBytesExact(bar.splitBytes)}), ${formatInteger(bar.numWhole)} whole segments (${formatBytesExact(bar.wholeBytes)})`}
                  </title>
                </rect>
              </g>
            );
          })}
          <line
            x1="0"
            x2="320"
            y1={HEIGHT_PX + 0.5}
            y2={HEIGHT_PX + 0.5}
            class="free-axis"
          />
          {ticks.map(({ x, text }) => (
            <text
              key={text}
              x={x > 280 ? 320 : x}
              y={HEIGHT_PX + 14}
              text-anchor={x > 280 ? "end" : "start"}
            >
              {text}
            </text>
          ))}
          {marked !== null && (
            <g class={request?.fits === true ? "free-mark is-ok" : "free-mark"}>
              <line x1={marked} x2={marked} y1="0" y2={HEIGHT_PX} />
              <text
                x={marked > 220 ? marked - 5 : marked + 5}
                y="11"
                text-anchor={marked > 220 ? "end" : "start"}
              >
                asked {formatBytes(request?.requestedBytes ?? 0, byteUnit)}
              </text>
            </g>
          )}
        </svg>
      )}
    </section>
  );
}

const WIDTH_PX = 320;
/** Smaller blocks than the allocator's rounding do not exist. */
const LEAST_POWER = 9;
const FEWEST_POWERS = 14;
const WIDEST_BAR_PX = 22;

export interface HistogramBar {
  readonly fromBytes: number;
  readonly x: number;
  readonly width: number;
  readonly numSplit: number;
  readonly splitBytes: number;
  readonly numWhole: number;
  readonly wholeBytes: number;
}

export interface Histogram {
  readonly bars: readonly HistogramBar[];
  /** Where the request stands; null: there is none. */
  readonly marked: number | null;
  readonly ticks: readonly { readonly x: number; readonly text: string }[];
  /** Of the highest bar. */
  readonly mostBytes: number;
}

/** One bar for each power of two, from 512 bytes to what is free or asked for. */
export function histogramBars(
  sizes: FreeSizes,
  request: Pick<SegmentRequest, "roundedBytes"> | null,
): Histogram {
  const asked = request === null ? 0 : Math.log2(Math.max(request.roundedBytes, 1));
  const largest = Math.log2(Math.max(sizes.fromBytes.at(-1) ?? 1, 1));
  const last = Math.max(
    Math.floor(Math.max(largest, asked)),
    LEAST_POWER + FEWEST_POWERS - 1,
  );
  const least = Math.log2(Math.max(sizes.fromBytes[0] ?? 512, 1));
  const first = Math.min(LEAST_POWER, Math.floor(least));
  const width = Math.min(WIDEST_BAR_PX, WIDTH_PX / (last - first + 1));
  const rows = new Map(
    Array.from(sizes.fromBytes, (from, row) => [Math.log2(from), row]),
  );
  const bars = Array.from({ length: last - first + 1 }, (_, i): HistogramBar => {
    const row = rows.get(first + i) ?? -1;
    return {
      fromBytes: 2 ** (first + i),
      x: i * width,
      width: width - 1,
      numSplit: sizes.numSplit[row] ?? 0,
      splitBytes: sizes.splitBytes[row] ?? 0,
      numWhole: sizes.numWhole[row] ?? 0,
      wholeBytes: sizes.wholeBytes[row] ?? 0,
    };
  });
  const ticks = bars
    .filter(({ fromBytes }) => Math.log2(fromBytes) % 5 === 0)
    .map(({ fromBytes, x }) => ({ x, text: sizeName(fromBytes) }));
  return {
    bars,
    marked: request === null ? null : Math.max(0, (asked - first) * width),
    ticks,
    mostBytes: Math.max(...bars.map((bar) => bar.splitBytes + bar.wholeBytes), 0),
  };
}

/** Powers of two are whole in their unit: `32 KiB`, not `32.0 KiB`. */
function sizeName(bytes: number): string {
  return formatBytes(bytes).replace(/\.0+ /, " ");
}

export function histogramTable(sizes: FreeSizes): Table {
  return {
    numRows: sizes.fromBytes.length,
    columns: [
      { name: "from_bytes", values: sizes.fromBytes },
      { name: "num_split", values: sizes.numSplit },
      { name: "split_bytes", values: sizes.splitBytes },
      { name: "num_whole", values: sizes.numWhole },
      { name: "whole_bytes", values: sizes.wholeBytes },
    ],
  };
}
