/** One bar per rank, or per few neighbours: who stands out, and by how much. */

import { useId, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { RankStrip } from "../../api/types.gen";
import { formatInteger, type ByteUnit } from "../../base/bytes";
import type { Theme } from "../../base/tokens";
import { fitted, useWidth } from "../plot/canvas";
import { barAt, layoutStrip, type StripBar, type StripOrder } from "./layout";
import { paintStrip, STRIP_LEFT_PX } from "./paint";
import "../plot/plot.css";
import "./rank_bars.css";

export interface RankBarsProps {
  readonly label: string;
  readonly strip: RankStrip;
  readonly order: StripOrder;
  /** The rank chosen; null where all are alike. */
  readonly rank: number | null;
  /** Ranks drawn at full strength; null means all. */
  readonly filter: ReadonlySet<number> | null;
  /** What the tooltip says of the rank at an index of the strip: word and value. */
  readonly facts: (i: number) => readonly (readonly [string, string])[];
  readonly onPick: (rank: number) => void;
  readonly theme: Theme;
  readonly byteUnit: ByteUnit;
  readonly heightPx: number;
}

export function RankBars(props: RankBarsProps) {
  const { strip, order, rank, filter, theme, byteUnit, heightPx } = props;
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const widthPx = useWidth(box);
  const helpId = useId();
  const [hovered, setHovered] = useState<number | null>(null);
  const layout = useMemo(
    () => layoutStrip(strip, order, Math.max(1, widthPx - STRIP_LEFT_PX)),
    [strip, order, widthPx],
  );
  useLayoutEffect(() => {
    const context = widthPx > 0 ? fitted(canvas.current, widthPx, heightPx) : null;
    if (context === null) return;
    const frame = { widthPx, heightPx, hovered, rank, filter };
    paintStrip(context, { strip, layout, theme, byteUnit, ...frame });
  });
  const bar = hovered === null ? undefined : layout.bars[hovered];
  const pick = (one: StripBar | undefined): void => {
    const picked = one === undefined ? undefined : strip.rank[one.top];
    if (picked !== undefined) props.onPick(picked);
  };
  const move = (to: number): void =>
    setHovered(Math.max(0, Math.min(layout.bars.length - 1, to)));
  return (
    <div class="strip" ref={box}>
      <canvas
        ref={canvas}
        tabIndex={0}
        role="application"
        aria-label={`${props.label}, ${formatInteger(strip.rank.length)} ranks`}
        aria-describedby={helpId}
        onPointerMove={(event) => {
          const left = event.currentTarget.getBoundingClientRect().left;
          setHovered(barAt(layout, event.clientX - left - STRIP_LEFT_PX));
        }}
        onPointerLeave={() => setHovered(null)}
        onBlur={() => setHovered(null)}
        onClick={() => pick(bar)}
        onKeyDown={(event) => {
          const at = hovered ?? -1;
          if (event.key === "ArrowRight") move(at + (event.shiftKey ? 10 : 1));
          else if (event.key === "ArrowLeft") move(at - (event.shiftKey ? 10 : 1));
          else if (event.key === "Home") move(0);
          else if (event.key === "End") move(layout.bars.length - 1);
          else if (event.key === "Enter") pick(bar);
          else return;
          event.preventDefault();
        }}
      />
      <p id={helpId} class="off-screen">
        Arrow keys move from rank to rank, Enter opens a rank’s page.
      </p>
      <div aria-live="polite">
        {bar !== undefined && hovered !== null && (
          <BarTip
            bar={bar}
            xPx={STRIP_LEFT_PX + (hovered + 0.5) * layout.pitchPx}
            widthPx={widthPx}
            {...props}
          />
        )}
      </div>
    </div>
  );
}

const TIP_WIDTH_PX = 248;

function BarTip(
  props: RankBarsProps & {
    readonly bar: StripBar;
    readonly xPx: number;
    readonly widthPx: number;
  },
) {
  const { bar, strip } = props;
  const i = bar.top;
  const leftPx = Math.min(
    Math.max(0, props.xPx - TIP_WIDTH_PX / 2),
    Math.max(0, props.widthPx - TIP_WIDTH_PX),
  );
  return (
    <div
      class="chart-tip bar-tip"
      style={{ left: `${leftPx}px`, width: `${TIP_WIDTH_PX}px` }}
    >
      <p>
        <strong>Rank {strip.rank[i]}</strong>{" "}
        <span class="quiet">{strip.hosts[strip.host[i] ?? -1] ?? ""}</span>
      </p>
      {bar.members.length > 1 && (
        <p class="quiet">
          The highest of {formatInteger(bar.members.length)} ranks here
        </p>
      )}
      <dl>
        {props.facts(i).map(([word, value]) => (
          <div key={word}>
            <dt>{word}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </div>
  );
}

/** A strip of one number per rank, of which nothing else is told. */
export function stripOfValues(rank: Int32Array, bytes: Float64Array): RankStrip {
  const num = rank.length;
  const unknown = new Float64Array(num).fill(NaN);
  const known = bytes.filter((value) => Number.isFinite(value)).sort();
  const middle = known.length / 2;
  const median =
    ((known[Math.ceil(middle) - 1] ?? NaN) + (known[Math.floor(middle)] ?? NaN)) / 2;
  return {
    peakSeries: "",
    capacityKind: "none",
    rank,
    host: new Int32Array(num).fill(-1),
    peakBytes: bytes,
    peakStep: unknown,
    capacityBytes: unknown,
    growthBytesPerStep: unknown,
    numAllocRetries: unknown,
    numOoms: unknown,
    lastStep: unknown,
    lost: new Uint8Array(num),
    hosts: [],
    medianPeakBytes: Number.isFinite(median) ? median : null,
    outliers: [],
    numUnread: 0,
  };
}
