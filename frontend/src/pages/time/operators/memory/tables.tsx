/** The tables of a trace's memory: by operator, and by allocation. */

import { useMemo } from "preact/hooks";
import type { OperatorMemoryResponse } from "../../../../api/types.gen";
import { formatInteger } from "../../../../base/bytes";
import { partColour } from "../../../../render/palette";
import { tableOf } from "../../../../widgets/row_table/columns";
import { RowTable } from "../../../../widgets/row_table/row_table";
import { useSort } from "../../../../widgets/row_table/use_sort";
import type { ViewProps } from "../../../shared/view_props";
import {
  allocationColumns,
  allocationsHolding,
  allocationsTable,
  USUAL_ALLOCATIONS,
} from "./allocation_columns";
import { memoryColumns, USUAL_MEMORY } from "./columns";
import { MemoryHead } from "./head";

const TABLE_PX = 360;
export function ByOperator({
  data,
  view,
}: {
  readonly data: OperatorMemoryResponse;
  readonly view: ViewProps;
}) {
  const { rows: values, numRows } = data;
  const columns = useMemo(
    () => memoryColumns(values, view.byteUnit, partColour(view.theme, "forward")),
    [values, view.byteUnit, view.theme],
  );
  const sorted = useSort(
    columns,
    values.name.length,
    USUAL_MEMORY,
    view.params.get("sort"),
    (sort) => view.setParams({ sort }),
  );
  return (
    <section aria-label="Memory by operator">
      <MemoryHead
        data={data}
        name="operator memory"
        table={() => tableOf(columns, sorted.rows)}
      >
        {formatInteger(numRows)} {numRows === 1 ? "operator" : "operators"} with memory
        {values.name.length < numRows &&
          `; the first ${formatInteger(values.name.length)} are listed`}
        .
      </MemoryHead>
      <RowTable
        label="Memory by operator"
        columns={columns}
        {...sorted}
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
  const sent = data.allocations.numBytes.length;
  const columns = useMemo(
    () => allocationColumns(data, view.byteUnit, view.theme),
    [data, view.byteUnit, view.theme],
  );
  const { rows, ...sorting } = useSort(
    columns,
    sent,
    USUAL_ALLOCATIONS,
    view.params.get("asort"),
    (asort) => view.setParams({ asort }),
  );
  const kept = useMemo(() => allocationsHolding(data, text), [data, text]);
  const shown = useMemo(
    () => (kept === null ? rows : rows.filter((row) => kept.has(row))),
    [rows, kept],
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
        rows={shown}
        selected={props.chosen}
        onSelect={props.onChoose}
        onHover={props.onPoint}
        {...sorting}
        empty="No allocation in this part, or none that holds this text."
        heightPx={TABLE_PX}
      />
    </section>
  );
}
