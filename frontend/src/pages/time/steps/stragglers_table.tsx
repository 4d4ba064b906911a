/** Ranks beside the median rank, those that cost most first. */

import { useMemo } from "preact/hooks";
import type { StragglersResponse } from "../../../api/types.gen";
import { formatInteger } from "../../../base/bytes";
import { formatSeconds } from "../../../base/durations";
import { originOf } from "../../../model/words/origin";
import type { Table } from "../../../model/table";
import { ExportMenu } from "../../../widgets/export/export_menu";
import type { ExportSource } from "../../../widgets/export/source";
import { RowTable, ROW_PX, type RowColumn } from "../../../widgets/row_table/row_table";
import { numberColumn, tableOf, textColumn } from "../../../widgets/row_table/columns";

const MOST_PX = 280;
const HEAD_PX = 32;

/** `+38.0 ms`; nothing known reads as an en dash. */
export function beyond(seconds: number): string {
  if (Number.isNaN(seconds)) return "–";
  return `${seconds > 0 ? "+" : ""}${formatSeconds(seconds)}`;
}

export function stragglerColumns(
  rows: StragglersResponse["rows"],
): readonly RowColumn[] {
  return [
    numberColumn(
      "rank",
      "Rank",
      "96px",
      rows.map(({ rank }) => rank),
      (rank, i) => ({
        text: String(rank),
        ...(rows[i]?.standsOut === true ? { note: "late" } : {}),
      }),
      "Late: far beyond the median rank, measured by how far ranks usually are apart",
    ),
    textColumn(
      "host",
      "Host",
      "minmax(96px, 1fr)",
      rows.map(({ host }) => host),
      "Where the rank runs: ranks of one host that are late together point at the host",
    ),
    numberColumn(
      "slowest_share",
      "Slowest in",
      "112px",
      rows.map(({ slowestShare }) => slowestShare),
      (share) => ({ text: `${(100 * share).toFixed(1)} %` }),
      "Steps in which this rank was the slowest of all ÷ steps. Of equal ranks each has about 1 ÷ their number.",
    ),
    numberColumn(
      "excess_seconds",
      "Step beyond median",
      "148px",
      rows.map(({ excessSeconds }) => excessSeconds ?? NaN),
      (seconds) => ({ text: beyond(seconds) }),
      "Median over the steps of its step time less that of the median rank",
    ),
    textColumn(
      "words",
      "What is longer",
      "minmax(220px, 2fr)",
      rows.map(({ words }) => words),
      "The part that is longest beyond the median rank's; ranks wait in communication and backward, so those do not count",
    ),
  ];
}

function stragglersTable(rows: StragglersResponse["rows"]): Table {
  const shown = tableOf(stragglerColumns(rows), [...rows.keys()]);
  const more = [
    { name: "part", values: rows.map(({ part }) => part) },
    {
      name: "part_excess_seconds",
      values: rows.map(({ partExcessSeconds }) => partExcessSeconds ?? NaN),
    },
    { name: "stands_out", values: rows.map((row) => Number(row.standsOut)) },
  ];
  return { ...shown, columns: [...shown.columns, ...more] };
}

export function StragglersTable(props: {
  readonly data: StragglersResponse;
  readonly pinned: readonly number[];
  readonly onPick: (rank: number) => void;
}) {
  const { data } = props;
  const { rows } = data;
  const columns = useMemo(() => stragglerColumns(rows), [rows]);
  const source: ExportSource = {
    origin: originOf(data.run),
    name: "stragglers",
    table: () => stragglersTable(rows),
    about: () => ({
      num_ranks: data.numRanks,
      num_steps: data.numSteps,
      steps_per_column: data.stepsPerColumn,
    }),
  };
  if (rows.length === 0) return null;
  return (
    <section class="steps-stragglers" aria-label="Stragglers">
      <header class="panel-head">
        <h2>Stragglers</h2>
        <span class="quiet">{headWords(data)}</span>
        <ExportMenu subject="the stragglers" source={source} />
      </header>
      <RowTable
        label="Ranks beside the median rank"
        columns={columns}
        rows={Array.from(rows.keys())}
        selected={null}
        onSelect={(i) => {
          const rank = rows[i]?.rank;
          if (rank !== undefined) props.onPick(rank);
        }}
        sort={null}
        empty="No rank has step times."
        heightPx={Math.min(MOST_PX, HEAD_PX + rows.length * ROW_PX)}
      />
    </section>
  );
}

/** How many stand out, of how many; and what was left out. */
export function headWords(data: StragglersResponse): string {
  const { numStandingOut: out, numRanks, numLeftOut, rows, stepsPerColumn } = data;
  const words = [
    out === 0
      ? `no rank of ${formatInteger(numRanks)} stands out`
      : `${formatInteger(out)} of ${formatInteger(numRanks)} ranks ${out === 1 ? "stands" : "stand"} out`,
  ];
  if (rows.length < numRanks)
    words.push(`the ${rows.length} that cost most are listed`);
  if (numLeftOut > 0) words.push(`${formatInteger(numLeftOut)} could not be compared`);
  if (stepsPerColumn > 1) {
    words.push(`means of ${formatInteger(stepsPerColumn)} steps are compared`);
  }
  return words.join("; ");
}
