import { useRef, useState } from "preact/hooks";
import type { RankHistoriesResponse } from "../../../api/types.gen";
import {
  counted,
  formatBytes,
  formatBytesExact,
  type ByteUnit,
} from "../../../base/bytes";
import { tokens, type Theme } from "../../../base/tokens";
import { hexOf, paletteAt } from "../../../render/palette";
import { fitted, useWidth } from "../../../widgets/plot/canvas";

const LINE_PX = 22;
const HEAD_PX = 20;
const LABEL_PX = 300;
const WIDEST_PX = 76;
/** A cell shows its bytes from this width on. */
const NAMED_PX = 56;
const FONT = "11px Roboto, Helvetica, Arial, sans-serif";

export function LineHeat(props: {
  readonly answer: RankHistoriesResponse;
  readonly order: Int32Array;
  readonly onRank: (row: number) => void;
  readonly theme: Theme;
  readonly byteUnit: ByteUnit;
}) {
  const { answer, order, theme, byteUnit } = props;
  const { lines, ranks, lineBytes } = answer;
  const box = useRef<HTMLDivElement>(null);
  const [tip, setTip] = useState("");
  const fullPx = useWidth(box);
  const labelPx = Math.min(LABEL_PX, fullPx * 0.4);
  const widthPx = Math.max(0, fullPx - labelPx);
  const cellPx = Math.min(WIDEST_PX, widthPx / Math.max(1, order.length));
  const heightPx = HEAD_PX + lines.length * LINE_PX;
  const most = lineBytes.reduce((high, bytes) => (bytes > high ? bytes : high), 1);
  const paint = (context: CanvasRenderingContext2D): void => {
    const { text, secondary, border } = tokens(theme);
    context.font = FONT;
    context.textBaseline = "middle";
    context.textAlign = "center";
    context.fillStyle = secondary;
    const every = Math.ceil(34 / cellPx);
    order.forEach((row, i) => {
      if (i % every !== 0) return;
      const x = labelPx + (i + 0.5) * cellPx;
      context.fillText((ranks[row]?.rank ?? 0).toString(), x, HEAD_PX / 2);
    });
    lines.forEach((label, line) => {
      const y = HEAD_PX + line * LINE_PX;
      const bytes = lineOf(answer, line);
      context.textAlign = "left";
      context.fillStyle = text;
      context.save();
      context.beginPath();
      context.rect(0, y, labelPx - 10, LINE_PX);
      context.clip();
      context.fillText(label, 0, y + LINE_PX / 2);
      context.restore();
      context.textAlign = "center";
      order.forEach((row, i) => {
        const value = bytes[row] ?? NaN;
        const x = labelPx + i * cellPx;
        const gap = cellPx > 6 ? 1 : 0;
        if (!Number.isFinite(value)) {
          context.strokeStyle = border;
          context.strokeRect(x + 0.5, y + 1.5, Math.max(1, cellPx - 2), LINE_PX - 4);
          return;
        }
        const pixel = paletteAt("cividis", value / most);
        context.fillStyle = hexOf(pixel);
        context.fillRect(x, y + 1, Math.max(1, cellPx - gap), LINE_PX - 2);
        if (cellPx < NAMED_PX) return;
        context.fillStyle = luminance(pixel) > 0.45 ? "#000000" : "#ffffff";
        context.fillText(formatBytes(value, byteUnit), x + cellPx / 2, y + LINE_PX / 2);
      });
    });
  };
  const cellAt = (event: MouseEvent) => {
    const line = Math.floor((event.offsetY - HEAD_PX) / LINE_PX);
    const row = order[Math.floor((event.offsetX - labelPx) / cellPx)];
    const isInside = line >= 0 && line < lines.length && row !== undefined;
    return isInside ? { line, row } : null;
  };
  if (lines.length === 0) return null;
  return (
    <section aria-label="Lines by rank">
      <div class="panel-head">
        <h2>The same lines in every rank</h2>
        <span class="quiet" role="status">
          {tip === "" ? "bytes at each rank’s peak; those that differ most first" : tip}
        </span>
      </div>
      <div ref={box}>
        <canvas
          ref={(canvas) => {
            const context = widthPx < 2 ? null : fitted(canvas, fullPx, heightPx);
            if (context !== null) paint(context);
          }}
          class="line-heat"
          role="img"
          aria-label={`Bytes of ${counted(lines.length, "line")} in ${counted(ranks.length, "rank")}; the table of ranks exports them`}
          onPointerMove={(event) => {
            const cell = cellAt(event);
            setTip(cell === null ? "" : tipOf(answer, cell));
          }}
          onPointerLeave={() => setTip("")}
          onClick={(event) => {
            const cell = cellAt(event);
            if (cell !== null) props.onRank(cell.row);
          }}
        />
      </div>
    </section>
  );
}

function lineOf(
  { lineBytes, ranks }: RankHistoriesResponse,
  line: number,
): Float64Array {
  return lineBytes.subarray(line * ranks.length, (line + 1) * ranks.length);
}

function tipOf(
  answer: RankHistoriesResponse,
  { line, row }: { readonly line: number; readonly row: number },
): string {
  const bytes = formatBytesExact(lineOf(answer, line)[row] ?? NaN);
  return `rank ${answer.ranks[row]?.rank ?? 0}: ${bytes} at ${answer.lines[line] ?? ""}`;
}

/** Perceived brightness of a pixel, 0 to 1. */
function luminance(pixel: number): number {
  const [r, g, b] = [pixel & 255, (pixel >>> 8) & 255, (pixel >>> 16) & 255];
  return (0.2126 * r + 0.7152 * g + 0.0722 * b) / 255;
}
