/** The difference as a table: by line, module, category or stack. */

import { useEffect, useMemo, useState } from "preact/hooks";
import { formatInteger } from "../../../base/bytes";
import { originOf } from "../../../model/words/origin";
import { clicked, type Sort } from "../../../model/shown_rows";
import { ExportMenu } from "../../../widgets/export/export_menu";
import type { ExportSource } from "../../../widgets/export/source";
import { RowTable } from "../../../widgets/row_table/row_table";
import { Segmented } from "../../shared/controls/choices";
import type { SetParams } from "../../memory/history/params";
import type { DifferenceProps } from "../two";
import { about, chosenRows, comparedStacks, rowsOf, rowsTable } from "./rows";
import { rowColumns } from "./columns";
import { ONLY, ONLY_WORDS, ROW_WORDS, ROWS, type CompareOnly } from "../params";

const TABLE_PX = 420;

export function Rows({ view, params, answer, exporter }: DifferenceProps) {
  const { theme, byteUnit, setParams } = view;
  const [sort, setSort] = useState<Sort>({ key: "change", descending: true });
  const [selected, setSelected] = useState<number | null>(null);
  const stacks = useMemo(() => comparedStacks(answer), [answer]);
  const rows = useMemo(
    () => rowsOf(answer, stacks, params.rows),
    [answer, stacks, params.rows],
  );
  const { only, find } = params;
  const shown = useMemo(
    () => chosenRows(rows, { only, find, sort }),
    [rows, only, find, sort],
  );
  useEffect(() => setSelected(null), [rows]);
  const source: ExportSource = {
    origin: originOf(view.run),
    name: `difference by ${params.rows}`,
    table: () => rowsTable(rows, shown, params.rows),
    about: () => ({
      match: params.match,
      only,
      a: about(answer.a),
      b: about(answer.b),
    }),
  };
  exporter.current = source;
  const columns = rowColumns(rows, params.rows, theme, byteUnit);
  return (
    <section aria-label="Difference as a table">
      <div class="panel-head">
        <h2>Difference by</h2>
        <Segmented
          label="By what"
          options={ROWS}
          chosen={params.rows}
          words={(one) => [ROW_WORDS[one][0], ROW_WORDS[one][1]]}
          onChoose={(one) => setParams({ by: one === "line" ? null : one })}
        />
        <Segmented<CompareOnly>
          label="Which rows"
          options={ONLY}
          chosen={only}
          words={(one) => ONLY_WORDS[one]}
          onChoose={(one) => setParams({ side: one === "all" ? null : one })}
        />
        <Find value={find} setParams={setParams} />
        <span class="quiet">
          {formatInteger(shown.length)} of {formatInteger(rows.labels.length)}
        </span>
        <span class="compare-fill" />
        <ExportMenu subject="the table" source={source} />
      </div>
      <RowTable
        label={`Difference by ${params.rows}`}
        columns={columns}
        rows={shown}
        selected={selected}
        onSelect={setSelected}
        sort={sort}
        onSort={(key) => setSort(clicked(sort, key, key === "label"))}
        empty={
          find !== ""
            ? "Nothing matches."
            : only === "all"
              ? "Neither side holds anything."
              : `${only.toUpperCase()} holds nothing that the other does not.`
        }
        heightPx={TABLE_PX}
      />
      {params.rows === "stack" && selected !== null && (
        <pre class="compare-stack">{rows.titles[selected] ?? ""}</pre>
      )}
    </section>
  );
}

function Find({
  value,
  setParams,
}: {
  readonly value: string;
  readonly setParams: SetParams;
}) {
  return (
    <input
      type="text"
      class="compare-find"
      aria-label="Find in the table"
      placeholder="Find"
      autocomplete="off"
      spellcheck={false}
      value={value}
      onInput={(event) => setParams({ find: event.currentTarget.value })}
    />
  );
}
