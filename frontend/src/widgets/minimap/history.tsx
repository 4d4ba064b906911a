import { useCallback } from "preact/hooks";
import { tokens } from "../../base/tokens";
import { Minimap, MINIMAP_PX, type MinimapProps } from "./minimap";
import { paintHistory } from "../block_stack/paint/paint";
import type { BlockPicture } from "../block_stack/picture";

export function HistoryMinimap(
  props: Pick<MinimapProps, "onRange"> & {
    readonly label?: string;
    readonly of: Pick<BlockPicture, "axis" | "device" | "marks" | "theme">;
    /** In units of the axis. */
    readonly seen: { readonly x0: number; readonly x1: number };
  },
) {
  const { of, seen, onRange } = props;
  const { device, axis, theme, marks } = of;
  const draw = useCallback(
    (context: CanvasRenderingContext2D, widthPx: number): void => {
      const { active, reserved } = device.curve;
      const most = Math.max(1, ...active, ...reserved);
      const toX = (x: number): number =>
        ((x - axis.low) / (axis.high - axis.low)) * widthPx;
      paintHistory(
        context,
        { device, axis, theme },
        toX,
        (bytes) => MINIMAP_PX - (bytes / most) * (MINIMAP_PX - 3),
      );
      const { text, bad } = tokens(theme);
      for (const { kind, x } of marks.points) {
        context.fillStyle = kind === "oom" ? bad : text;
        context.globalAlpha = kind === "oom" ? 1 : 0.5;
        context.fillRect(toX(x) - 0.75, 0, 1.5, MINIMAP_PX);
      }
      context.globalAlpha = 1;
    },
    [device, axis, theme, marks],
  );
  const isWhole = seen.x0 <= axis.low && seen.x1 >= axis.high;
  return (
    <Minimap
      label={props.label ?? "The whole history; drag to choose the part that is shown"}
      draw={draw}
      extent={axis}
      range={isWhole ? null : { low: seen.x0, high: seen.x1 }}
      onRange={onRange}
    />
  );
}
