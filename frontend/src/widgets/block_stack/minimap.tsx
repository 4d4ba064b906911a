/** A whole history as a strip, with the part a picture above it shows. */

import { useCallback } from "preact/hooks";
import { tokens } from "../../base/tokens";
import type { Viewport } from "../../render/viewport";
import { Minimap, MINIMAP_PX } from "../minimap/minimap";
import type { BlockController } from "./controller";
import type { BlockPicture } from "./picture";

type Whole = Pick<BlockPicture, "device" | "axis" | "theme" | "marks">;

export function HistoryMinimap(props: {
  readonly of: Whole;
  readonly controller: BlockController | null;
  readonly seen: Viewport;
}) {
  const { controller, seen } = props;
  const { device, axis, theme, marks } = props.of;
  const draw = useCallback(
    (context: CanvasRenderingContext2D, widthPx: number): void =>
      drawCurve(context, widthPx, { device, axis, theme, marks }),
    [device, axis, theme, marks],
  );
  const whole = seen.x0 <= axis.low && seen.x1 >= axis.high;
  return (
    <Minimap
      label="The whole history; drag to choose the part that is shown"
      draw={draw}
      extent={{ low: axis.low, high: axis.high }}
      range={whole ? null : { low: seen.x0, high: seen.x1 }}
      onRange={(range) => {
        if (controller === null) return;
        const { low, high } = range ?? axis;
        controller.setView({ ...controller.view, x0: low, x1: high });
      }}
    />
  );
}

function drawCurve(
  context: CanvasRenderingContext2D,
  widthPx: number,
  { device, axis, theme, marks }: Whole,
): void {
  const { event, active, reserved } = device.curve;
  const { link, text, bad } = tokens(theme);
  const most = [active, reserved].reduce((high, values) => {
    return values.reduce((top, bytes) => Math.max(top, bytes), high);
  }, 1);
  const toPx = (x: number): number =>
    ((x - axis.low) / (axis.high - axis.low)) * widthPx;
  const path = (values: Float64Array): void => {
    context.beginPath();
    values.forEach((bytes, i) => {
      const y = MINIMAP_PX - (bytes / most) * (MINIMAP_PX - 3);
      const next = event[i + 1];
      context.lineTo(toPx(axis.xAfter((event[i] ?? 0) - 1)), y);
      context.lineTo(toPx(next === undefined ? axis.high : axis.xAfter(next - 1)), y);
    });
  };
  path(active);
  context.lineTo(widthPx, MINIMAP_PX);
  context.lineTo(0, MINIMAP_PX);
  context.closePath();
  context.fillStyle = link;
  context.globalAlpha = 0.45;
  context.fill();
  context.globalAlpha = 0.7;
  path(reserved);
  context.strokeStyle = text;
  context.lineWidth = 1;
  context.stroke();
  for (const mark of marks.points) {
    context.fillStyle = mark.kind === "oom" ? bad : text;
    context.globalAlpha = mark.kind === "oom" ? 1 : 0.5;
    context.fillRect(toPx(mark.x) - 0.75, 0, 1.5, MINIMAP_PX);
  }
  context.globalAlpha = 1;
}
