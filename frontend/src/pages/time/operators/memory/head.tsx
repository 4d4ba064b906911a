/** A sentence above a table or picture of operators' memory, and its export. */

import type { ComponentChildren } from "preact";
import type { OperatorMemoryResponse } from "../../../../api/types.gen";
import { originOf } from "../../../../model/words/origin";
import type { Table } from "../../../../model/table";
import { ExportMenu } from "../../../../widgets/export/export_menu";

export function MemoryHead(props: {
  readonly data: OperatorMemoryResponse;
  readonly name: string;
  readonly table: (data: OperatorMemoryResponse) => Table;
  readonly children: ComponentChildren;
}) {
  const { run, choice, device, charge } = props.data;
  return (
    <div class="panel-head">
      <p class="trace-sum">{props.children}</p>
      <ExportMenu
        subject={`the ${props.name}`}
        source={{
          origin: originOf(run),
          name: props.name,
          table: () => props.table(props.data),
          about: () => ({ source: choice.source, device, charge }),
        }}
      />
    </div>
  );
}
