/** A searchable, sortable table of numbers by module, with its own export. */

import { useMemo, useState } from "preact/hooks";
import { formatInteger } from "../../../base/bytes";
import type { Origin } from "../../../model/words/origin";
import { ExportMenu } from "../../../widgets/export/export_menu";
import { Status } from "../../../widgets/status/status";
import { TreeTable } from "../../../widgets/tree_table/tree_table";
import type { TreeSort } from "../../../widgets/tree_table/types";
import { listRows, type ValueList } from "./values";

const TABLE_PX = 320;

export interface ValueTableProps {
  readonly title: string;
  /** Said beside the title, e.g. totals. */
  readonly facts: string;
  /** The call ended in an error: later modules are not among the rows. */
  readonly incomplete: boolean;
  /** Said where there are no rows at all. */
  readonly empty: string;
  /** Names the exported file. */
  readonly name: string;
  readonly list: ValueList;
  readonly firstSort: TreeSort | null;
  readonly origin: Origin;
  readonly about: Readonly<Record<string, unknown>>;
}

export function ValueTable(props: ValueTableProps) {
  const { title, list } = props;
  const [find, setFind] = useState("");
  const [sort, setSort] = useState(props.firstSort);
  const [selected, setSelected] = useState<number | null>(null);
  const rows = useMemo(() => listRows(list, find, sort), [list, find, sort]);
  return (
    <section aria-label={title}>
      <div class="panel-head functions-head">
        <h2>{title}</h2>
        <span class="quiet">{props.facts}</span>
        <input
          type="text"
          class="functions-find"
          aria-label={`Find in ${title.toLowerCase()}`}
          placeholder="Find modules"
          autocomplete="off"
          spellcheck={false}
          value={find}
          onInput={(event) => setFind(event.currentTarget.value)}
        />
        <span class="quiet" role="status">
          {formatInteger(rows.length)} rows
        </span>
        <ExportMenu
          subject={title.toLowerCase()}
          source={{
            origin: props.origin,
            name: props.name,
            table: () => list.table,
            about: () => props.about,
          }}
        />
      </div>
      {props.incomplete && (
        <p class="functions-note">
          <Status look={{ word: "Incomplete", icon: "warning", tone: "warn" }} /> The
          call ended in an error: modules that it did not reach are not listed.
        </p>
      )}
      <TreeTable
        label={title}
        columns={list.columns}
        rows={rows}
        selected={selected}
        onSelect={setSelected}
        onToggle={() => undefined}
        sort={sort}
        onSort={(key) => {
          if (sort?.key !== key) setSort({ key, descending: true });
          else setSort(sort.descending ? { key, descending: false } : null);
        }}
        empty={find === "" ? props.empty : "No module matches."}
        heightPx={TABLE_PX}
      />
    </section>
  );
}
