/** The exact values under the pointer, and which module's boundaries are near. */

import type { ByteUnit } from "../../base/bytes";
import { categoryLabel } from "../../model/category";
import { formatExact, formatQuantity } from "../../model/words/quantity";
import { ChartTip, StackRows, type TipPlace } from "../tip/chart_tip";
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
  readonly at: TipPlace;
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
  const { answer, column, span, boundary, byteUnit } = props;
  return (
    <ChartTip at={props.at}>
      <div class="chart-tip-x">{axisText(props.x, answer.axis, props.began)}</div>
      {span !== null && <div>{spanWords(span)}</div>}
      {column >= 0 && (
        <StackRows
          total={{
            name: "total",
            value: answer.totalBytes[column] ?? NaN,
            colour: null,
          }}
          parts={answer.categories.map(({ name, bytes }, i) => ({
            name: categoryLabel(name),
            value: bytes[column] ?? NaN,
            colour: props.colours[i] ?? null,
          }))}
          text={(value) => formatQuantity(value, "bytes", byteUnit)}
          exact={(value) => formatExact(value, "bytes")}
        />
      )}
      {boundary !== null && (
        <div class="chart-note">Click: {props.boundaryWords(boundary)}</div>
      )}
    </ChartTip>
  );
}
