import type { TableRows } from "../../../api/types.gen";
import { useLive } from "../../../api/live/use_live";
import { formatSeconds } from "../../../base/durations";
import { Findings } from "../../../widgets/finding/finding";
import { Legend } from "../../../widgets/plot/legend";
import { ProblemList } from "../../../widgets/problem_list/problem_list";
import { Waiting } from "../../../widgets/state/state";
import { Choice, TextButton } from "../../shared/controls/choices";
import { usePageState, whole } from "../../shared/page_state";
import { Drawer } from "../../shared/panels/drawer";
import { NotCollected } from "../../shared/panels/not_collected";
import type { ViewProps } from "../../shared/view_props";
import { AnswerTable } from "../../shared/table/answer_table";
import { numbersOf } from "../../shared/table/columns";
import { PartBar, PartWays, partsOf, sumOf } from "../profiled/part_bar";
import { RankHeat } from "./heat";
import "../time.css";

const LOADING_PX = 320;
/** Ranks of which bars say more than a heatmap of as many stripes. */
const MOST_BARS = 4;

const WORDS = { cycle: whole("cycle"), step: whole("step") };

const SNIPPET = `with mb.record(logdir, torch_profiler=True, schedule="...wa") as rec:
    for batch in loader:
        train_step(batch)
        rec.step()`;

export function DistributedView(view: ViewProps) {
  const { client, run, ranks, chooseRank } = view;
  const [state, setState] = usePageState(view, WORDS);
  const { data, error } = useLive(
    client,
    "distributed",
    { run: run.id, ranks: ranks.filter, cycle: state.cycle, step: state.step },
    view.pollMs,
  );
  if (data === null) {
    return <Waiting error={error} hasContent={false} blocksPx={[LOADING_PX]} />;
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
  const { ranks: table, groups, collectives } = data;
  const numbers = numbersOf(table, "rank");
  const row = ranks.rank === null ? -1 : numbers.indexOf(ranks.rank);
  const shared = { view, about: { cycle: data.cycle, step: data.step } };
  return (
    <section class="panel stacked" aria-labelledby="distributed-title">
      <h2 id="distributed-title">{data.sentence}</h2>
      <Findings {...view} findings={data.findings} />
      <p class="quiet">{data.summary}</p>
      <div class="row">
        {data.cycles.length > 1 && (
          <Choice
            label="Cycle"
            value={data.cycle}
            of={[...data.cycles]}
            onChange={(cycle) => setState({ cycle: Number(cycle), step: null }, "push")}
          />
        )}
        <Choice
          label="Step"
          value={data.step ?? ""}
          of={[["", `mean of ${data.steps.length}`], ...data.steps]}
          onChange={(step) => view.setParams({ step: step || null }, "push")}
        />
      </div>
      {numbers.length > 1 && numbers.length <= MOST_BARS && (
        <RankBars view={view} ranks={table} late={data.findings[0]?.rank ?? null} />
      )}
      {numbers.length > MOST_BARS && (
        <RankHeat
          view={view}
          cycle={data.cycle}
          ranks={table}
          numOpening={data.numOpening}
          onPick={(rank, { firstStep, lastStep }) => {
            chooseRank(rank);
            // A column of several steps chooses none of them.
            if (firstStep === lastStep) setState({ step: firstStep }, "push");
          }}
        />
      )}
      <div class={row < 0 ? "" : "inspected"}>
        <AnswerTable
          {...shared}
          table={table}
          word="rsort"
          find={{
            word: "rfind",
            label: "Ranks in the table, such as 0-7,64",
            placeholder: "0-7,64",
          }}
          selected={row < 0 ? null : row}
          onSelect={(nextRow) =>
            chooseRank(nextRow === row ? null : (numbers[nextRow] ?? null))
          }
        />
        {row >= 0 && (
          <RankInspector view={view} ranks={table} row={row} step={data.step} />
        )}
      </div>
      {groups.numAll > 0 && <AnswerTable {...shared} table={groups} word="gsort" />}
      {collectives.numAll > 0 && (
        <AnswerTable
          {...shared}
          table={collectives}
          word="csort"
          find={{
            word: "cfind",
            label: "Collectives: kind, group, or a rank’s number",
            placeholder: "all_gather 637",
          }}
        />
      )}
      {data.problems.length > 0 && <ProblemList problems={data.problems} />}
    </section>
  );
}

/** The parts of each rank's step, as long as they take. */
function RankBars({
  view,
  ranks,
  late,
}: {
  readonly view: ViewProps;
  readonly ranks: TableRows;
  readonly late: number | null;
}) {
  const bars = [...numbersOf(ranks, "rank")].map(
    (rank, row) => [rank, partsOf(ranks, row, view.theme)] as const,
  );
  const longest = Math.max(...bars.map(([, parts]) => sumOf(parts)));
  const shown = (bars[0]?.[1] ?? []).filter((_, place) =>
    bars.some(([, parts]) => (parts[place]?.value ?? 0) > 0),
  );
  return (
    <div class="part-bars" role="group" aria-label="Parts of a step by rank">
      <Legend
        items={shown.map(({ label, help, colour }) => ({ label, help, colour }))}
      />
      {bars.map(([rank, parts]) => (
        <PartBar
          key={rank}
          label={
            <>
              {Number.isNaN(rank) ? "rank unknown" : `rank ${rank}`}
              {rank === late && <span class="quiet"> straggler</span>}
            </>
          }
          parts={parts}
          longest={longest}
        />
      ))}
    </div>
  );
}

function RankInspector(props: {
  readonly view: ViewProps;
  readonly ranks: TableRows;
  readonly row: number;
  /** null: the mean of all. */
  readonly step: number | null;
}) {
  const { view, ranks, row, step } = props;
  const rank = numbersOf(ranks, "rank")[row] ?? NaN;
  const parts = partsOf(ranks, row, view.theme);
  const total = (numbersOf(ranks, "step_ms")[row] ?? NaN) / 1e3;
  const ways: Readonly<Record<string, readonly [string, () => void]>> = {
    computation_ms: ["Operators", () => view.showPage("operators", {})],
    other_ms: ["Trace", () => view.showPage("trace", { w0: null, w1: null })],
  };
  return (
    <aside class="inspector" aria-label="Inspector">
      <Drawer
        label="The chosen rank"
        title={`Rank ${rank} · ${step === null ? "mean step" : `step ${step}`} ${formatSeconds(total)}`}
        actions={
          <TextButton press={() => view.showPage("kernels", {})}>
            Show its kernels
          </TextButton>
        }
        close={() => view.chooseRank(null)}
      >
        <PartBar label="" parts={parts} longest={total} />
        <PartWays
          parts={parts.map((part) => {
            const [where, lead] = ways[part.name] ?? [
              "the collectives below",
              () => view.setParams({ cfind: String(rank) }, "push"),
            ];
            return {
              ...part,
              help: `${part.help} Opens ${where} of rank ${rank}.`,
              lead,
            };
          })}
        />
      </Drawer>
    </aside>
  );
}
