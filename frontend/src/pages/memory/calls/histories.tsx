/** Captured allocator histories: what there is, and how to get it out. */

import type { FunctionsResponse, HistoryReference } from "../../../api/types.gen";
import { formatInteger } from "../../../base/bytes";
import { CopyIcon } from "../../../widgets/icon/copy_icon";
import { textColumn } from "../../../widgets/row_table/columns";
import { RowTable } from "../../../widgets/row_table/row_table";
import type { ViewProps } from "../../shared/view_props";
import { historyNote, historyTitle } from "../history/words";

/** Those of the call shown first; else in order of time. */
export function orderedHistories(data: FunctionsResponse): readonly HistoryReference[] {
  return data.histories.toSorted(
    (a, b) => Number(isOfCall(b, data)) - Number(isOfCall(a, data)),
  );
}

/** Whether a capture is of the call shown. */
function isOfCall(one: HistoryReference, data: FunctionsResponse): boolean {
  const keys = ["function", "phase", "iteration", "attempt"] as const;
  return keys.every((key) => one[key] === data[key]);
}

export function exportCommand(runName: string, rank: number): string {
  const run = /^[\w./-]+$/.test(runName)
    ? runName
    : `'${runName.replaceAll("'", "'\\''")}'`;
  return `memboard export LOGDIR --run ${run} --rank ${rank} --history`;
}

export function Histories(props: {
  readonly view: ViewProps;
  readonly data: FunctionsResponse;
}) {
  const { view, data } = props;
  const found = orderedHistories(data);
  if (found.length === 0) return null;
  const command = exportCommand(data.run.name, data.rank ?? 0);
  const choices = found.map((reference) => ({
    reference,
    origin: reference.path === "" ? ("by_hand" as const) : ("file" as const),
  }));
  return (
    <section aria-label="Allocator histories">
      <div class="panel-head">
        <h2 id="histories">Allocator histories</h2>
        <span class="quiet">
          {formatInteger(found.length)} captured on rank {data.rank}
        </span>
      </div>
      <RowTable
        label="Allocator histories"
        columns={[
          textColumn(
            "taken",
            "Taken at; click to open it in Blocks",
            "minmax(260px, 2fr)",
            choices.map(historyTitle),
            undefined,
            (text, row) => {
              const one = choices[row];
              if (one === undefined) return { text };
              const own = isOfCall(one.reference, data) ? "· this call " : "";
              return { text, note: `${own}· ${historyNote(one, view.byteUnit)}` };
            },
          ),
          textColumn(
            "path",
            "Where it is",
            "minmax(200px, 1fr)",
            found.map(({ path }) => path || "in the rank’s recording"),
          ),
        ]}
        rows={[...found.keys()]}
        onSelect={(row) => {
          const history = found[row]?.id ?? null;
          view.showPage("blocks", { history, moment: null });
        }}
        sort={null}
        empty=""
        heightPx={260}
      />
      {data.rank !== null && found.some(({ path }) => path === "") && (
        <p>
          <span class="quiet">
            As pickles that pytorch.org/memory_viz reads, LOGDIR being what TensorBoard
            was given:
          </span>{" "}
          <code>{command}</code> <CopyIcon label="Copy the command" text={command} />
        </p>
      )}
    </section>
  );
}
