/** Why the devices of a trace were idle, how late work started, how much was queued. */

import { useState } from "preact/hooks";
import { useLive } from "../../../../api/use_live";
import { originOf } from "../../../../model/words/origin";
import { ROW_PX } from "../../../../widgets/row_table/row_table";
import type { ViewProps } from "../../../shared/view_props";
import { AnswerTable } from "../../profiled/answer_table";

const OPENING_POLL_MS = 1_000;
const MOST_ROWS = 8;
const HEAD_PX = 30;

export function IdlePart({ view }: { readonly view: ViewProps }) {
  const { client, run, ranks, params } = view;
  const [opening, setOpening] = useState(true);
  const query = { run: run.id, rank: ranks.rank, source: params.get("source") ?? null };
  const pollMs = opening ? OPENING_POLL_MS : view.pollMs;
  const { data } = useLive(client, "trace_idle", query, pollMs);
  const isOpening = data === null || data.state === "opening";
  if (isOpening !== opening) setOpening(isOpening);
  if (data === null || data.table.numRows === 0) return null;
  const { table, sentences } = data;
  return (
    <AnswerTable
      view={view}
      table={table}
      label="Idle time of the device"
      word="idle_sort"
      head={<h3>Idle time of the device</h3>}
      origin={originOf(run)}
      file={{ name: "idle time" }}
      empty=""
      heightPx={HEAD_PX + ROW_PX * Math.min(table.numRows, MOST_ROWS)}
    >
      {sentences.map((one) => (
        <p key={one}>{one}</p>
      ))}
    </AnswerTable>
  );
}
