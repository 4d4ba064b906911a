/** Which line is which, with its value at the shared cursor; a click hides a line. */

import type { ReadonlySignal } from "@preact/signals";
import type { Unit } from "../../api/types.gen";
import type { ByteUnit } from "../../base/bytes";
import type { Theme } from "../../base/tokens";
import { formatQuantity } from "../../model/words/quantity";
import { bandRow, pointAt } from "./cursor";
import { BAND_ID } from "./shapes";
import { Swatch } from "./swatch";
import type { ChartBand, ChartLine } from "./types";

export interface LegendProps {
  readonly lines: readonly ChartLine[];
  readonly band: ChartBand | null;
  readonly cursor: ReadonlySignal<number | null>;
  readonly hidden: ReadonlySet<string>;
  readonly onToggle: (id: string) => void;
  readonly unit: Unit;
  readonly byteUnit: ByteUnit;
  readonly theme: Theme;
}

/** At the cursor, or the newest where there is no cursor. */
function valueOf(line: ChartLine, at: number | null): number {
  const index = at === null ? line.y.length - 1 : pointAt(line.x, at);
  return line.y[index] ?? NaN;
}

export function Legend(props: LegendProps) {
  const { lines, band, hidden, onToggle, unit, byteUnit, theme } = props;
  const at = props.cursor.value;
  const median =
    band === null ? null : bandRow(band, at ?? band.x[band.x.length - 1] ?? NaN);
  const item = (
    id: string,
    label: string,
    note: string | null,
    value: number,
    swatch: { colour: number | null; dash: "solid" | "dashed" | "dotted" },
  ) => (
    <li key={id}>
      <button
        type="button"
        aria-pressed={!hidden.has(id)}
        title={hidden.has(id) ? `Show ${label}` : `Hide ${label}`}
        onClick={() => onToggle(id)}
      >
        <Swatch theme={theme} {...swatch} />
        <span>{label}</span>
        {note !== null && <span class="chart-note">{note}</span>}
        <span class="chart-value">{formatQuantity(value, unit, byteUnit)}</span>
      </button>
    </li>
  );
  return (
    <ul class="chart-legend">
      {band !== null &&
        item(BAND_ID, band.label, "median, p5–p95, min–max", median?.median ?? NaN, {
          colour: null,
          dash: "solid",
        })}
      {lines.map((line) =>
        item(line.id, line.label, line.note ?? null, valueOf(line, at), {
          colour: line.colour,
          dash: line.dash ?? "solid",
        }),
      )}
    </ul>
  );
}
