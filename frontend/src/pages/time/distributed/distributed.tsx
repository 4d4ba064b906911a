/** Ranks of a profiling cycle beside each other, and their collectives. */

import { useState } from "preact/hooks";
import { useLive } from "../../../api/use_live";
import { formatInteger } from "../../../base/bytes";
import { originOf } from "../../../model/words/origin";
import { Findings } from "../../../widgets/finding/finding";
import { Icon } from "../../../widgets/icon/icon";
import { ProblemList } from "../../../widgets/problem_list/problem_list";
import { Failure, Skeleton } from "../../../widgets/state/state";
import { Choice } from "../../shared/controls/choices";
import { text, usePageState, whole } from "../../shared/page_state";
import { NotCollected } from "../../shared/panels/not_collected";
import type { ViewProps } from "../../shared/view_props";
import { AnswerTable, columnOf } from "../profiled/answer_table";
import { RankHeat, shownRank } from "./heat";
import { RankInspector } from "./inspector";
import "../time.css";

const OPENING_POLL_MS = 700;
const LOADING_PX = 320;
const TABLE_PX = 360;

const WORDS = {
  cycle: whole("cycle"),
  step: whole("step"),
  ranks: text("rfind"),
  collectives: text("cfind"),
};

const SNIPPET = `with collector.record(logdir, torch_profiler=True, schedule="...wa") as rec:
    for batch in loader:
        train_step(batch)
        rec.step()`;

export function DistributedView(view: ViewProps) {
  const { client, run, ranks, chooseRank } = view;
  const [state, setState] = usePageState(view, WORDS);
  const [opens, setOpens] = useState(false);
  const { data, error } = useLive(
    client,
    "distributed",
    { run: run.id, ranks: ranks.filter, cycle: state.cycle, step: state.step },
    opens ? OPENING_POLL_MS : view.pollMs,
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
  const { groups, collectives, missing } = data;
  const numbers = columnOf(data.ranks, "rank")?.numbers ?? new Float64Array();
  const row = ranks.rank === null ? -1 : numbers.indexOf(ranks.rank);
  const file = (name: string) => ({
    name,
    about: () => ({ cycle: data.cycle, step: data.step }),
  });
  const shared = { view, origin: originOf(data.run), heightPx: TABLE_PX };
  return (
    <section class="panel stacked" aria-labelledby="distributed-title">
      <h2 id="distributed-title">{data.sentence}</h2>
      {missing !== "" && (
        <p>
          <span class="status-warn">
            <Icon name="warning" sizePx={16} />
          </span>{" "}
          {missing}
        </p>
      )}
      <Findings {...view} findings={data.findings} />
      <div class="row">
        <span class="quiet">{data.summary}</span>
        {data.cycles.length > 1 && (
          <Choice
            label="Cycle"
            value={String(data.cycle ?? "")}
            onChange={(cycle) => setState({ cycle: Number(cycle), step: null }, "push")}
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
            setState({ step: step === "" ? null : Number(step) }, "push")
          }
        >
          <option value="">mean of {data.steps.length}</option>
          {Array.from(data.steps, (step) => (
            <option key={step} value={String(step)}>
              {step}
            </option>
          ))}
        </Choice>
      </div>
      {numbers.length > 1 && (
        <RankHeat
          view={view}
          cycle={data.cycle}
          ranks={data.ranks}
          onPick={({ firstRank, lastRank, firstStep, lastStep }, part) => {
            chooseRank(shownRank(data.ranks, part, firstRank, lastRank));
            // A column of several steps is none of them.
            if (firstStep === lastStep) setState({ step: firstStep }, "push");
          }}
        />
      )}
      <div class={row < 0 ? "" : "inspected"}>
        <AnswerTable
          {...shared}
          table={data.ranks}
          label="Ranks in profiled steps"
          word="rsort"
          text={state.ranks}
          find={{
            label: "Ranks in the table, such as 0-7,64",
            placeholder: "0-7,64",
            onText: (ranks) => setState({ ranks }),
          }}
          selected={row < 0 ? null : row}
          onSelect={(one) => chooseRank(one === row ? null : (numbers[one] ?? null))}
          head={<h3>Ranks</h3>}
          file={file("ranks")}
          empty={
            numbers.length === 0
              ? "No trace of this cycle is open yet."
              : "None of these ranks has a trace of this cycle."
          }
        />
        {row >= 0 && (
          <RankInspector
            view={view}
            ranks={data.ranks}
            row={row}
            step={data.step}
            showCollectives={(rank) => setState({ collectives: String(rank) }, "push")}
          />
        )}
      </div>
      {groups.numAll > 0 && (
        <AnswerTable
          {...shared}
          table={groups}
          label="Collectives by process group"
          word="gsort"
          head={
            <>
              <h3>By process group</h3>
              {groups.numRows < groups.numAll && (
                <span class="quiet">
                  the {formatInteger(groups.numRows)} of {formatInteger(groups.numAll)}{" "}
                  that waited longest
                </span>
              )}
            </>
          }
          file={file("process groups")}
          empty="No two ranks’ traces show the same collective."
        />
      )}
      {collectives.numAll > 0 && (
        <AnswerTable
          {...shared}
          table={collectives}
          label="Collectives"
          word="csort"
          text={state.collectives}
          find={{
            label: "Collectives: kind, group, or a rank’s number",
            placeholder: "all_gather 637",
            onText: (value) => setState({ collectives: value }),
          }}
          head={
            <>
              <h3>Collectives</h3>
              <span class="quiet">
                {formatInteger(collectives.numAll)} rows, one per rank, kind and group
                {collectives.numRows < collectives.numAll &&
                  `; the ${formatInteger(collectives.numRows)} that took longest are listed`}
              </span>
            </>
          }
          file={file("collectives")}
          empty="No collective holds this text."
        />
      )}
      {data.problems.length > 0 && <ProblemList problems={data.problems} />}
    </section>
  );
}
