/** What the colours and patterns of the map are called, and how much each is. */

import type { SegmentsResponse } from "../../api/types.gen";
import { formatBytes, formatBytesExact, type ByteUnit } from "../../base/bytes";
import type { Theme } from "../../base/tokens";
import { legendOf, type SegmentFill } from "./fills";

export function SegmentLegend(props: {
  readonly answer: SegmentsResponse;
  readonly fill: SegmentFill;
  readonly theme: Theme;
  readonly byteUnit: ByteUnit;
}) {
  const { answer, fill, theme, byteUnit } = props;
  return (
    <ul class="segment-legend">
      {legendOf(answer, fill, theme).map((entry) => (
        <li key={entry.key} title={`${entry.hint}: ${formatBytesExact(entry.bytes)}`}>
          <span
            class={`segment-swatch is-${entry.pattern}`}
            style={{ backgroundColor: entry.colour }}
          />
          {entry.label}
          <span class="quiet">{formatBytes(entry.bytes, byteUnit)}</span>
        </li>
      ))}
    </ul>
  );
}
