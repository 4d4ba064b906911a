/** The tables of a trace's memory: by operator, and by allocation. */

import { useMemo } from "preact/hooks";
import type { OperatorMemoryResponse } from "../../../api/types.gen";
import { formatInteger } from "../../../base/bytes";
import { clicked, sortedRows, sortOf, sortWord } from "../../../model/shown_rows";
import { partColour } from "../../../render/palette";
import { RowTable } from "../../../widgets/row_table/row_table";
import type { ViewProps } from "../../view_props";
import {
  ALLOCATION_KEYS,
  allocationColumns,
  allocationsHolding,
  allocationsTable,
  allocationValues,
  USUAL_ALLOCATIONS,
} from "./allocation_columns";
import {
  MEMORY_KEYS,
  memoryColumns,
  memoryTable,
  memoryValues,
  USUAL_MEMORY,
} from "./columns";
import { MemoryHead } from "./head";

const TABLE_PX = 360;
/** Columns of texts, which are sorted from A. */
const TEXTS: readonly string[] = ["operator", "category", "module", "phase"];

export function ByOperator({
  data,
  view,
}: {
  readonly data: OperatorMemoryResponse;
  readonly view: ViewProps;
}) {
  const { rows: values, numRows } = data;
  const sort = sortOf(view.params.get("sort"), MEMORY_KEYS, USUAL_MEMORY);
  const rows = useMemo(
    () =>
      sortedRows(values.name.length, memoryValues(values, sort.key), sort.descending),
    [values, sort.key, sort.descending],
  );
  const columns = useMemo(
    () => memoryColumns(values, view.byteUnit, partColour(view.theme, "forward")),
    [values, view.byteUnit, view.theme],
  );
  return (
    <section aria-label="Memory by operator">
      <MemoryHead data={data} name="operator memory" table={memoryTable}>
        {formatInteger(numRows)} {numRows === 1 ? "operator" : "operators"} with memory
        {values.name.length < numRows &&
          `; the first ${formatInteger(values.name.length)} are listed`}
        .
      </MemoryHead>
      <RowTable
        label="Memory by operator"
        columns={columns}
        rows={rows}
        sort={sort}
        onSort={(key) => {
          const next = clicked(sort, key, key === "name");
          view.setParams({ sort: sortWord(next, USUAL_MEMORY) });
        }}
        empty="No operator holds this text, or allocated in this part."
        heightPx={TABLE_PX}
      />
    </section>
  );
}

export function Allocations(props: {
  readonly data: OperatorMemoryResponse;
  readonly view: ViewProps;
  readonly text: string;
  readonly chosen: number | null;
  readonly onChoose: (row: number) => void;
  readonly onPoint: (row: number | null) => void;
}) {
  const { data, view, text } = props;
  const sort = sortOf(view.params.get("asort"), ALLOCATION_KEYS, USUAL_ALLOCATIONS);
  const sent = data.allocations.numBytes.length;
  const rows = useMemo(() => {
    const sorted = sortedRows(sent, allocationValues(data, sort.key), sort.descending);
    const kept = allocationsHolding(data, text);
    return kept === null ? sorted : sorted.filter((row) => kept.has(row));
  }, [data, sort.key, sort.descending, text]);
  const columns = useMemo(
    () => allocationColumns(data, view.byteUnit, view.theme),
    [data, view.byteUnit, view.theme],
  );
  return (
    <section aria-label="Allocations">
      <MemoryHead data={data} name="operator allocations" table={allocationsTable}>
        {formatInteger(data.numAllocations)}{" "}
        {data.numAllocations === 1 ? "allocation" : "allocations"}
        {sent < data.numAllocations &&
          `; the ${formatInteger(sent)} largest are listed`}
        . Point at one to see on the curve when it was allocated and freed.
        {!data.hasAddresses &&
          " The trace has no addresses, so when they were freed is not known."}
      </MemoryHead>
      <RowTable
        label="Allocations"
        columns={columns}
        rows={rows}
        selected={props.chosen}
        onSelect={props.onChoose}
        onHover={props.onPoint}
        sort={sort}
        onSort={(key) => {
          const next = clicked(sort, key, TEXTS.includes(key));
          view.setParams({ asort: sortWord(next, USUAL_ALLOCATIONS) });
        }}
        empty="No allocation in this part, or none that holds this text."
        heightPx={TABLE_PX}
      />
    </section>
  );
}
