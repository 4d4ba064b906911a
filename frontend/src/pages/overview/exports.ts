/** What the Overview writes into files: the ranks' columns and the whole answer. */

import type { OverviewResponse } from "../../api/types.gen";
import type { Command } from "../../base/commands";
import { originOf } from "../../model/words/origin";
import type { Table } from "../../model/table";
import { exportCommands } from "../../widgets/export/export_commands";
import { TABLE_FORMATS, type ExportSource } from "../../widgets/export/source";

/** The rank strip with every digit; one row per rank. */
function rankTable({ strip }: OverviewResponse): Table {
  const hosts = Array.from(strip.host, (index) => strip.hosts[index] ?? "");
  return {
    numRows: strip.rank.length,
    columns: [
      { name: "rank", values: strip.rank },
      { name: "host", values: hosts },
      { name: "peak_bytes", values: strip.peakBytes },
      { name: "peak_step", values: strip.peakStep },
      { name: "capacity_bytes", values: strip.capacityBytes },
      { name: "growth_bytes_per_step", values: strip.growthBytesPerStep },
      { name: "num_alloc_retries", values: strip.numAllocRetries },
      { name: "num_ooms", values: strip.numOoms },
      { name: "last_step", values: strip.lastStep },
      { name: "lost", values: strip.lost },
    ],
  };
}

/** The headline numbers with every digit. */
function headlineTable({ headlines }: OverviewResponse): Table {
  return {
    numRows: headlines.length,
    columns: [
      { name: "headline", values: headlines.map((one) => one.key) },
      { name: "value", values: headlines.map((one) => one.value ?? Number.NaN) },
      { name: "unit", values: headlines.map((one) => one.unit) },
      { name: "rank", values: headlines.map((one) => one.rank ?? Number.NaN) },
      { name: "step", values: headlines.map((one) => one.step ?? Number.NaN) },
      { name: "caveats", values: headlines.map((one) => one.caveats.join(" ")) },
      { name: "absent_reason", values: headlines.map((one) => one.absentReason ?? "") },
    ],
  };
}

export function overviewExports(
  data: OverviewResponse | null,
  say: (sentence: string) => void,
): readonly Command[] {
  const commands = (subject: string, table: (of: OverviewResponse) => Table) => {
    const source = (of: OverviewResponse): ExportSource => ({
      origin: originOf(of.run),
      name: of.rank === null ? subject : `rank ${of.rank} ${subject}`,
      table: () => table(of),
      about: () => ({ rank: of.rank }),
    });
    return exportCommands({
      view: "overview",
      subject,
      formats: TABLE_FORMATS,
      source: () => (data === null ? null : source(data)),
      say,
    });
  };
  return [
    ...commands("table of ranks", rankTable),
    ...commands("table of headline numbers", headlineTable),
  ];
}
