import type { FunctionsResponse } from "../../../api/types.gen";
import { formatInteger } from "../../../base/bytes";
import { CopyIcon } from "../../../widgets/icon/copy_icon";
import { textColumn } from "../../../widgets/row_table/columns";
import { RowTable } from "../../../widgets/row_table/row_table";
import type { ViewProps } from "../../shared/view_props";
import { historyNote, historyTitle } from "../history/words";

export function Histories(props: {
  readonly view: ViewProps;
  readonly data: FunctionsResponse;
}) {
  const { view, data } = props;
  const { histories: found, exportCommand: command } = data;
  if (found.length === 0) return null;
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
              const own = row < data.numOwnHistories ? "· this call " : "";
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
      {command !== "" && (
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
