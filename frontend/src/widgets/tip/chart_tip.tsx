import type { ComponentChildren } from "preact";

interface TipPlace {
  /** CSS px of the chart. */
  readonly leftPx: number;
  readonly topPx: number;
  readonly flip: boolean;
  readonly above?: boolean;
}

/** Distance from the pointer. */
const ASIDE_PX = 14;
const ABOVE_PX = 10;

export function ChartTip(props: {
  readonly at: TipPlace;
  readonly belowPx?: number;
  readonly kind?: string;
  readonly children: ComponentChildren;
}) {
  const { at, belowPx = 0, kind = "" } = props;
  const { leftPx, topPx, flip, above = false } = at;
  const side = flip
    ? { right: `calc(100% - ${leftPx - ASIDE_PX}px)` }
    : { left: `${leftPx + ASIDE_PX}px` };
  const height = above
    ? { bottom: `calc(100% - ${topPx - ABOVE_PX}px)` }
    : { top: `${topPx + belowPx}px` };
  return (
    <div
      class={`chart-tip ${kind}`.trimEnd()}
      style={{ ...side, ...height }}
      aria-hidden="true"
    >
      {props.children}
    </div>
  );
}
