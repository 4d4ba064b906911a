/** What is under the pointer of a chart, beside it. */

import type { ComponentChildren } from "preact";

interface TipPlace {
  /** Where the pointer is in the chart, in CSS px. */
  readonly leftPx: number;
  readonly topPx: number;
  /** It hangs left of the pointer. */
  readonly flip: boolean;
  /** It stands above the pointer. */
  readonly above?: boolean;
}

/** Between the pointer and what stands beside or above it. */
const ASIDE_PX = 14;
const ABOVE_PX = 10;

export function ChartTip(props: {
  readonly at: TipPlace;
  /** Between the pointer and what hangs below it. */
  readonly belowPx?: number;
  /** One more class. */
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
