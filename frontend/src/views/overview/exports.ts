/** What the Overview writes into files: the ranks' columns and the whole answer. */

import type { OverviewResponse } from "../../api/types.gen";
import type { Command } from "../../base/commands";
import type { Table } from "../../model/table";
import { toCsv, toJson } from "../../widgets/export/csv";
import { downloadText } from "../../widgets/export/download";

/** The rank strip with every digit; one row per rank. */
export function rankTable({ strip }: OverviewResponse): Table {
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
export function headlineTable({ headlines }: OverviewResponse): Table {
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

/** `newest` is asked when the user exports, so the file holds what is on the page. */
export function overviewExports(
  newest: () => OverviewResponse | null,
): readonly Command[] {
  const command = (
    id: string,
    label: string,
    what: string,
    extension: "csv" | "json",
    table: (data: OverviewResponse) => Table,
  ): Command => ({
    id: `overview.${id}`,
    label,
    group: "Export",
    run: () => {
      const data = newest();
      if (data === null) return;
      const rank = data.rank === null ? "" : `-rank${data.rank}`;
      const about = {
        run: data.run.name,
        rank: data.rank,
        simulated: data.run.simulated,
      };
      const text =
        extension === "csv" ? toCsv(table(data)) : toJson(table(data), about);
      downloadText(`${data.run.name}${rank}-${what}`, extension, text);
    },
  });
  return [
    command("ranks_csv", "Ranks as CSV", "ranks", "csv", rankTable),
    command("ranks_json", "Ranks as JSON", "ranks", "json", rankTable),
    command(
      "headlines_csv",
      "Headline numbers as CSV",
      "headlines",
      "csv",
      headlineTable,
    ),
    command(
      "headlines_json",
      "Headline numbers as JSON",
      "headlines",
      "json",
      headlineTable,
    ),
  ];
}
