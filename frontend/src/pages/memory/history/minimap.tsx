/** A whole history as a strip, with the part a picture above it shows. */

import { useCallback } from "preact/hooks";
import type { HistoryDevice } from "../../../api/types.gen";
import { tokens, type Theme } from "../../../base/tokens";
import type { Viewport } from "../../../render/viewport";
import type { BlockAxis } from "../../../widgets/block_stack/axis";
import type { BlockController } from "../../../widgets/block_stack/controller";
import type { DrawnMarks } from "../../../widgets/block_stack/marks";
import { Minimap, MINIMAP_PX } from "../../../widgets/minimap/minimap";

interface MinimapScene {
  readonly device: HistoryDevice;
  readonly axis: BlockAxis;
  readonly theme: Theme;
  readonly marks: DrawnMarks;
}

export function HistoryMinimap(
  props: MinimapScene & {
    readonly controller: BlockController | null;
    readonly seen: Viewport | null;
  },
) {
  const { device, axis, controller, seen, theme, marks } = props;
  const draw = useCallback(
    (context: CanvasRenderingContext2D, widthPx: number): void =>
      drawCurve(context, widthPx, { device, axis, theme, marks }),
    [device, axis, theme, marks],
  );
  const whole = seen === null || (seen.x0 <= axis.low && seen.x1 >= axis.high);
  return (
    <Minimap
      label="The whole history; drag to choose the part that is shown"
      draw={draw}
      extent={{ low: axis.low, high: axis.high }}
      range={whole ? null : { low: seen.x0, high: seen.x1 }}
      onRange={(range) => {
        if (controller === null) return;
        const { world, view } = controller;
        controller.setView(
          range === null
            ? { ...view, x0: world.x0, x1: world.x1 }
            : { ...view, x0: range.low, x1: range.high },
        );
      }}
    />
  );
}

function drawCurve(
  context: CanvasRenderingContext2D,
  widthPx: number,
  { device, axis, theme, marks }: MinimapScene,
): void {
  const { curve } = device;
  const { link, text, bad } = tokens(theme);
  const num = curve.event.length;
  let most = 1;
  for (let i = 0; i < num; i += 1) {
    most = Math.max(most, curve.active[i] ?? 0, curve.reserved[i] ?? 0);
  }
  const height = MINIMAP_PX - 3;
  const span = axis.high - axis.low;
  const x = (i: number): number => {
    const at = i < num ? axis.xAfter((curve.event[i] ?? 0) - 1) : axis.high;
    return ((at - axis.low) / span) * widthPx;
  };
  const y = (bytes: number): number => MINIMAP_PX - (bytes / most) * height;
  const path = (values: Float64Array): void => {
    context.beginPath();
    for (let i = 0; i < num; i += 1) {
      const at = y(values[i] ?? 0);
      if (i === 0) context.moveTo(x(0), at);
      else context.lineTo(x(i), at);
      context.lineTo(x(i + 1), at);
    }
  };
  path(curve.active);
  context.lineTo(widthPx, MINIMAP_PX);
  context.lineTo(0, MINIMAP_PX);
  context.closePath();
  context.fillStyle = link;
  context.globalAlpha = 0.45;
  context.fill();
  context.globalAlpha = 0.7;
  path(curve.reserved);
  context.strokeStyle = text;
  context.lineWidth = 1;
  context.stroke();
  context.globalAlpha = 1;
  for (const mark of marks.points) {
    const at = ((mark.x - axis.low) / span) * widthPx;
    context.fillStyle = mark.kind === "oom" ? bad : text;
    context.globalAlpha = mark.kind === "oom" ? 1 : 0.5;
    context.fillRect(at - 0.75, 0, 1.5, MINIMAP_PX);
  }
  context.globalAlpha = 1;
}
