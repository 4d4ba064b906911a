import { useMemo, useRef, useState } from "preact/hooks";
import type { RankStrip } from "../../api/types.gen";
import { formatInteger, type ByteUnit } from "../../base/bytes";
import type { Origin } from "../../model/words/origin";
import { ExportMenu } from "../export/export_menu";
import { tableOf } from "../row_table/columns";
import { RowTable } from "../row_table/row_table";
import { useSort } from "../row_table/use_sort";
import { rankColumns } from "./columns";
import "./rank_table.css";

const USUAL = { key: "peak", descending: true } as const;

interface RankTableProps {
  readonly strip: RankStrip;
  /** null: all. */
  readonly ranks: ReadonlySet<number> | null;
  readonly pinned: readonly number[];
  readonly onPin: (rank: number) => void;
  readonly onPick: (rank: number) => void;
  readonly byteUnit: ByteUnit;
  /** At most; fewer rows take less. */
  readonly heightPx: number;
  readonly origin: Origin;
}

export function RankTable(props: RankTableProps) {
  const { strip, ranks, pinned, onPin, byteUnit } = props;
  const [word, setWord] = useState<string | null>(null);
  const latest = useRef(onPin);
  latest.current = onPin;
  const columns = useMemo(
    () => rankColumns(strip, new Set(pinned), (rank) => latest.current(rank), byteUnit),
    [strip, pinned, byteUnit],
  );
  const { rows: all, ...sorting } = useSort(
    ...([columns, strip.rank.length, USUAL, word, setWord] as const),
  );
  const rows = useMemo(
    () => all.filter((i) => ranks?.has(strip.rank[i] ?? -1) ?? true),
    [strip, ranks, all],
  );
  const rankOf = (row: number): number => strip.rank[row] ?? -1;
  return (
    <section class="rank-table" aria-label="Ranks">
      <div class="chart-bar">
        <h3>{rows.length === 1 ? "1 rank" : `${formatInteger(rows.length)} ranks`}</h3>
        <ExportMenu
          subject="the table of ranks"
          source={{
            origin: props.origin,
            name: "ranks",
            table: () => tableOf(columns, rows),
            about: () => ({ peak_series: strip.peakSeries }),
          }}
        />
      </div>
      <RowTable
        label="Ranks"
        columns={columns}
        rows={rows}
        onSelect={(row) => props.onPick(rankOf(row))}
        isMarked={(row) => pinned.includes(rankOf(row))}
        {...sorting}
        empty="No rank has recorded a step yet."
        heightPx={props.heightPx}
      />
    </section>
  );
}
