/** What is under the pointer of a chart, beside it. */

import type { ComponentChildren } from "preact";

export interface TipPlace {
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

export interface TipRow {
  readonly name: string;
  readonly value: number;
  readonly colour: string | null;
}

/** A total and its parts as they are stacked: the topmost first, none that is 0. */
export function StackRows(props: {
  readonly total: TipRow;
  readonly parts: readonly TipRow[];
  readonly text: (value: number) => string;
  /** What stands behind the text, fainter. */
  readonly exact: (value: number) => string;
}) {
  const { total, parts, text, exact } = props;
  const shown = parts.filter(({ value }) => value > 0).reverse();
  return (
    <table>
      <tbody>
        {[total, ...shown].map(({ name, value, colour }) => (
          <tr key={name}>
            <td>
              {colour !== null && (
                <span class="swatch" style={{ background: colour }} />
              )}
            </td>
            <td>{name}</td>
            <td>{text(value)}</td>
            <td class="chart-exact">{exact(value)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
