/** The exact values under the pointer, and which module's boundaries are near. */

import type { ByteUnit } from "../../base/bytes";
import { categoryLabel } from "../../model/category";
import { formatExact, formatQuantity } from "../../model/words/quantity";
import { axisText } from "./axis";
import type { Boundary, Span } from "./spans";
import type { StackAnswer } from "./types";

export interface StackTipProps {
  readonly answer: StackAnswer;
  readonly began: string;
  readonly colours: readonly string[];
  readonly column: number;
  readonly x: number;
  readonly span: Span | null;
  /** What a click chooses. */
  readonly boundary: Boundary | null;
  readonly boundaryWords: (boundary: Boundary) => string;
  readonly byteUnit: ByteUnit;
  readonly leftPx: number;
  readonly topPx: number;
  readonly flip: boolean;
}

export const KIND_WORDS = {
  forward: "forward",
  backward: "backward",
  recompute: "recomputed forward",
} as const;

export function spanWords(span: Span): string {
  const call = span.call > 0 ? `, call ${span.call + 1}` : "";
  return `${KIND_WORDS[span.kind]} of ${span.module}${call}`;
}

export function StackTip(props: StackTipProps) {
  const { answer, column, span, boundary, byteUnit, leftPx, flip } = props;
  const side = flip
    ? { right: `calc(100% - ${leftPx - 14}px)` }
    : { left: `${leftPx + 14}px` };
  const row = (name: string, value: number, colour: string | null) => (
    <tr key={name}>
      <td>
        {colour !== null && (
          <span class="column-swatch stack-swatch" style={{ background: colour }} />
        )}
      </td>
      <td>{name}</td>
      <td>{formatQuantity(value, "bytes", byteUnit)}</td>
      <td class="chart-exact">{formatExact(value, "bytes")}</td>
    </tr>
  );
  return (
    <div
      class="chart-tip"
      style={{ ...side, top: `${props.topPx}px` }}
      aria-hidden="true"
    >
      <div class="chart-tip-x">{axisText(props.x, answer.axis, props.began)}</div>
      {span !== null && <div>{spanWords(span)}</div>}
      {column >= 0 && (
        <table>
          <tbody>
            {row("total", answer.totalBytes[column] ?? NaN, null)}
            {answer.categories
              .map(({ name, bytes }, i) => ({
                name,
                value: bytes[column] ?? NaN,
                colour: props.colours[i] ?? null,
              }))
              // As they are stacked: the topmost first.
              .reverse()
              .filter(({ value }) => value > 0)
              .map(({ name, value, colour }) =>
                row(categoryLabel(name), value, colour),
              )}
          </tbody>
        </table>
      )}
      {boundary !== null && (
        <div class="chart-note">Click: {props.boundaryWords(boundary)}</div>
      )}
    </div>
  );
}
