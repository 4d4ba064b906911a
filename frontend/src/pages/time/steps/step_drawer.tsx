/**
 * Below the charts, not beside them: they share one axis, and the table has a column a
 * part.
 */

import type { StepResponse } from "../../../api/types.gen";
import { useLive } from "../../../api/live/use_live";
import { counted, formatInteger } from "../../../base/bytes";
import { formatInstant, formatSeconds } from "../../../base/durations";
import { Waiting } from "../../../widgets/state/state";
import { Drawer } from "../../shared/panels/drawer";
import type { ViewProps } from "../../shared/view_props";
import { AnswerTable } from "../../shared/table/answer_table";
import { numbersOf } from "../../shared/table/columns";
import { PartBar, partsOf } from "../profiled/part_bar";
import { showStepInTrace } from "./parts_panel";

const TABLE_PX = 196;

export function StepDrawer(props: {
  readonly view: ViewProps;
  readonly step: number;
  readonly phase: string;
  readonly close: () => void;
}) {
  const { view, step, phase } = props;
  const { client, run, ranks, pollMs } = view;
  const query = { run: run.id, rank: ranks.rank, ranks: ranks.filter, phase, step };
  const live = useLive(client, "step", query, pollMs);
  const data = live.data?.step === step ? live.data : null;
  const of = (key: string, row = 0): number =>
    (data && numbersOf(data.ranks, key)[row]) ?? NaN;
  const numRows = data?.ranks.numRows ?? 0;
  const slowest = `${formatSeconds(of("seconds"))} on rank ${of("rank")}`;
  const among =
    (data?.numRanks ?? 0) > 1
      ? `, the slowest of ${formatInteger(data?.numRanks ?? 0)}`
      : "";
  return (
    <Drawer
      label="The pinned step"
      title={`Step ${formatInteger(step)}${numRows === 0 ? "" : ` · ${slowest}${among}`}`}
      actions={
        numRows > 0 && (
          <button
            type="button"
            class="button"
            title="The spans and traces that were recorded while this step ran, on its slowest rank"
            onClick={() => showStepInTrace(view, of("rank"), step)}
          >
            Show in Trace
          </button>
        )
      }
      close={props.close}
    >
      <Waiting error={live.error} hasContent={data !== null} blocksPx={[TABLE_PX]} />
      {data !== null && numRows > 0 && <Step view={view} data={data} />}
    </Drawer>
  );
}

function Step({
  view,
  data,
}: {
  readonly view: ViewProps;
  readonly data: StepResponse;
}) {
  const { ranks, numUnread } = data;
  const of = (key: string): Float64Array => numbersOf(ranks, key);
  const seconds = of("seconds");
  const middle = Math.floor(ranks.numRows / 2);
  const rows = middle > 0 ? ([0, middle] as const) : [0];
  return (
    <>
      <div>
        {rows.map((row) => (
          <PartBar
            key={row}
            label={
              <>
                rank {of("rank")[row]}{" "}
                <span class="quiet">
                  {middle === 0 ? "" : row === 0 ? "slowest" : "median"}
                </span>
              </>
            }
            parts={partsOf(ranks, row, view.theme)}
            total={seconds[row] ?? NaN}
            longest={seconds[0] ?? NaN}
          />
        ))}
      </div>
      <AnswerTable
        view={view}
        table={ranks}
        word="step_sort"
        onSelect={(row) => view.chooseRank(of("rank")[row] ?? null)}
        head={
          <p class="quiet small">
            {formatInstant(of("start_ms")[0] ?? NaN)}
            {numUnread > 0 && ` · ${counted(numUnread, "rank")} not read yet`}
            {ranks.numRows < ranks.numAll &&
              ` · the slowest ${formatInteger(ranks.numRows)} are listed`}
          </p>
        }
        about={{ step: data.step, num_ranks: ranks.numAll }}
        heightPx={TABLE_PX}
      />
    </>
  );
}
