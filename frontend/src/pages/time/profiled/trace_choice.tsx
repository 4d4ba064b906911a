import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";
import type { Problem, ProfileChoice, RunSummary } from "../../../api/types.gen";
import type { Live } from "../../../api/live/watch";
import { asSentence } from "../../../model/words/source_label";
import { Icon } from "../../../widgets/icon/icon";
import { ProblemList } from "../../../widgets/problem_list/problem_list";
import { Waiting } from "../../../widgets/state/state";
import { Choice } from "../../shared/controls/choices";
import { NotCollected } from "../../shared/panels/not_collected";
import type { ViewProps } from "../../shared/view_props";
import "../time.css";

export function TraceChoice(props: {
  readonly choice: ProfileChoice;
  readonly onChoose: (source: string) => void;
}) {
  const { source, traces } = props.choice;
  return (
    <Choice
      label="Trace"
      value={source}
      of={traces.map(({ id, title }) => [id, title])}
      onChange={props.onChoose}
    />
  );
}

/** What is wrong with traces: the first in a line, all when it is opened. */
export function ProblemLine(props: {
  readonly problems: readonly Problem[];
  /** Left out where slices may be of another run. */
  readonly view?: ViewProps | undefined;
}) {
  const { problems, view } = props;
  const [first] = problems;
  if (first === undefined) return null;
  return (
    <details>
      <summary>
        <span class="status-warn">
          <Icon name="warning" sizePx={16} />
        </span>{" "}
        {asSentence(first.what)}
        {problems.length > 1 && ` And ${problems.length - 1} more.`}
      </summary>
      <ProblemList
        problems={problems}
        onSlice={view && ((slice) => view.showPage("trace", { tab: null, slice }))}
      />
    </details>
  );
}

export function TraceState(props: {
  readonly choice: ProfileChoice;
  readonly view?: ViewProps;
}) {
  const { state, problem, problems } = props.choice;
  return (
    <>
      {state === "opening" && (
        <p class="quiet" role="status">
          Reading the trace: {Math.round(props.choice.progress * 100)} %
          {props.choice.doing !== "" && `, ${props.choice.doing}`}
        </p>
      )}
      {problem !== null && <ProblemList problems={[problem]} />}
      {problem === null && <ProblemLine problems={problems} view={props.view} />}
    </>
  );
}

const SNIPPET = `with mb.record(
    "runs/my_run", model=model, optimizer=optimizer,
    schedule={"wait": 10, "warmup": 2, "active": 3, "repeat": 2},
    torch_profiler={"enabled": True, "record_shapes": True, "with_stack": True},
) as rec:
    ...`;

export function NoTraces({ contents }: { readonly contents: string }) {
  return (
    <NotCollected
      title={`No profiler traces in this run, so no ${contents}`}
      absent={[]}
      snippet={SNIPPET}
      note="Traces that torch.profiler wrote open too: drop them into the logdir, or onto this page."
    />
  );
}

export function TraceFrame<
  D extends { readonly choice: ProfileChoice; readonly run: RunSummary },
>(props: {
  readonly live: Live<D>;
  readonly contents: string;
  readonly view: ViewProps;
  /** Words of the URL that are of one trace. */
  readonly leaves?: Readonly<Record<string, null>>;
  /** `chooser` is placed among the page's own controls. */
  readonly children: (data: D, chooser: ComponentChildren) => ComponentChildren;
}) {
  const { view, live } = props;
  const { data, error, stale } = live;
  const kept = useRef<D | null>(null);
  const isReady = data?.choice.state === "ready" && data.choice.problem === null;
  if (isReady) kept.current = data;
  if (data === null) {
    return <Waiting error={error} hasContent={false} blocksPx={[32, 400]} />;
  }
  const { choice } = data;
  if (choice.numTraces === 0) return <NoTraces contents={props.contents} />;
  // While another trace loads, such as a run's newest, the page stays, with what is
  // typed, chosen and scrolled.
  const before = kept.current?.run.id === data.run.id ? kept.current : null;
  const shown = isReady ? data : choice.state === "opening" ? before : null;
  const chooser = (
    <TraceChoice
      choice={choice}
      onChoose={(source) => {
        // Pages narrowed to a rank use the trace's.
        const own = choice.traces.find(({ id }) => id === source)?.rank ?? null;
        if (![null, own].includes(view.ranks.rank)) view.chooseRank(own);
        view.setParams({ ...props.leaves, source }, "push");
      }}
    />
  );
  const old = stale || (shown !== null && shown !== data);
  return (
    <div class={old ? "stacked stale" : "stacked"} aria-busy={old}>
      <Waiting error={error} hasContent />
      <TraceState choice={choice} view={view} />
      {shown === null ? (
        <div class="row">{chooser}</div>
      ) : (
        props.children(shown, chooser)
      )}
    </div>
  );
}
