/** Ranks of a profiling cycle beside each other, and their collectives. */

import { useState } from "preact/hooks";
import type { DistributedResponse } from "../../../api/types.gen";
import { useLive } from "../../../api/use_live";
import { formatInteger } from "../../../base/bytes";
import { originOf } from "../../../model/words/origin";
import { ExportMenu } from "../../../widgets/export/export_menu";
import { Findings } from "../../../widgets/finding/finding";
import { Icon } from "../../../widgets/icon/icon";
import { ProblemList } from "../../../widgets/problem_list/problem_list";
import { Failure, Skeleton } from "../../../widgets/state/state";
import { Choice } from "../../shared/controls/choices";
import { NotCollected } from "../../shared/panels/not_collected";
import type { ViewProps } from "../../shared/view_props";
import { tableOf } from "../../../widgets/row_table/columns";
import { rankColumns } from "./columns";
import { missingWords, waitWords, shownRank, spreadWords } from "./search";
import { Collectives, Groups, Ranks } from "./tables";
import { RankHeat } from "./heat";
import "./distributed.css";

const OPENING_POLL_MS = 700;
const LOADING_PX = 320;

const SNIPPET = `with collector.record(logdir, torch_profiler=True, schedule="...wa") as rec:
    for batch in loader:
        train_step(batch)
        rec.step()`;

export function DistributedView(props: ViewProps) {
  const { client, run, ranks, params, setParams } = props;
  const [opens, setOpens] = useState(false);
  const [marked, setMarked] = useState<number | null>(null);
  const { data, error } = useLive(
    client,
    "distributed",
    {
      run: run.id,
      ranks: ranks.filter,
      cycle: params.get("cycle") ?? null,
      step: params.get("profiled") ?? null,
    },
    opens ? OPENING_POLL_MS : props.pollMs,
  );
  const isOpening = (data?.numOpening ?? 0) > 0;
  if (isOpening !== opens) setOpens(isOpening);
  if (data === null) {
    return error === null ? (
      <Skeleton heightPx={LOADING_PX} />
    ) : (
      <Failure failure={error} />
    );
  }
  if (data.numTraces === 0) {
    return (
      <NotCollected
        title="No traces of ranks to compare in this run"
        absent={[]}
        snippet={SNIPPET}
        note="Every rank’s trace of the same cycle is put beside the others, with its collectives."
      />
    );
  }
  const waits = waitWords(data);
  return (
    <section class="panel distributed" aria-labelledby="distributed-title">
      <header class="panel-head">
        <h2 id="distributed-title">
          {waits === "" ? "Who waits for whom is not known." : waits}
        </h2>
      </header>
      {missingWords(data) !== "" && (
        <p class="distributed-finding">
          <span class="status-warn">
            <Icon name="warning" sizePx={16} />
          </span>{" "}
          {missingWords(data)}
        </p>
      )}
      <Findings {...props} findings={data.findings} />
      <div class="distributed-bar">
        <span class="distributed-sum quiet">{summary(data)}</span>
        {data.cycles.length > 1 && (
          <Choice
            label="Cycle"
            value={String(data.cycle ?? "")}
            onChange={(cycle) => setParams({ cycle, profiled: null }, "push")}
          >
            {Array.from(data.cycles, (cycle) => (
              <option key={cycle} value={String(cycle)}>
                {cycle}
              </option>
            ))}
          </Choice>
        )}
        <Choice
          label="Step"
          value={String(data.step ?? "")}
          onChange={(step) =>
            setParams({ profiled: step === "" ? null : step }, "push")
          }
        >
          <option value="">mean of {data.steps.length}</option>
          {Array.from(data.steps, (step) => (
            <option key={step} value={String(step)}>
              {step}
            </option>
          ))}
        </Choice>
        <ExportMenu
          subject="the ranks in profiled steps"
          source={{
            origin: originOf(data.run),
            name: "ranks",
            table: () => tableOf(rankColumns(data, props.theme), [...data.rank.keys()]),
            about: () => ({ cycle: data.cycle, step: data.step }),
          }}
        />
      </div>
      {data.rank.length > 1 && (
        <RankHeat
          view={props}
          cycle={data.cycle}
          // A picture of nothing exposed tells no rank from another.
          usual={data.communicationMs.some((ms) => ms > 0) ? "communication" : "step"}
          onPick={({ firstRank, lastRank, firstStep, lastStep }, part) => {
            setMarked(shownRank(data, part, firstRank, lastRank));
            // A column of several steps is none of them.
            if (firstStep === lastStep) {
              setParams({ profiled: String(firstStep) }, "push");
            }
          }}
        />
      )}
      <Ranks
        data={data}
        view={props}
        marked={marked}
        onMark={(rank) => setMarked(rank === marked ? null : rank)}
      />
      {data.numGroups > 0 && <Groups data={data} view={props} />}
      {data.numCollectives > 0 && <Collectives data={data} view={props} />}
      {data.problems.length > 0 && <ProblemList problems={data.problems} />}
    </section>
  );
}

function summary(data: DistributedResponse): string {
  const words = [
    `${formatInteger(data.rank.length)} of ${formatInteger(data.numTraces)} ranks`,
  ];
  if (data.numOpening > 0)
    words.push(`${formatInteger(data.numOpening)} still being read`);
  if (data.numFailed > 0) words.push(`${formatInteger(data.numFailed)} cannot be read`);
  if (data.numMatched > 0) {
    words.push(
      `${formatInteger(data.numMatched)} collectives that all their ranks show`,
    );
  }
  return `${words.join("; ")}. ${spreadWords(data)}`.trim();
}
