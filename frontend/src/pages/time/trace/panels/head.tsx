import type { ComponentChildren } from "preact";
import { useMemo, useRef } from "preact/hooks";
import type { TraceResponse, TraceSource } from "../../../../api/types.gen";
import { formatBytes, formatInteger } from "../../../../base/bytes";
import { commandsOf, useCommands } from "../../../../base/commands";
import { Icon, IconButton } from "../../../../widgets/icon/icon";
import { Menu } from "../../../../widgets/menu/menu";
import { ZoomButtons } from "../../../../widgets/plot/chart_frame";
import { ProblemList } from "../../../../widgets/problem_list/problem_list";
import { ProblemLine } from "../../profiled/trace_choice";
import { Choice, Switch } from "../../../shared/controls/choices";
import type { ViewProps } from "../../../shared/view_props";
import { fileUrl, mergedUrl, openPerfetto } from "../perfetto";
import { ASKED } from "../state/params";
import { type Timeline } from "../state/timeline";
import { hitOf, hitsOf } from "../state/selection";

export function Head(props: {
  readonly answer: TraceResponse;
  readonly view: ViewProps;
  readonly children?: ComponentChildren;
}) {
  const { answer, view } = props;
  const { run } = view;
  const traces = tracesOf(answer);
  const cycles = [...new Set(answer.choices.map(({ cycle }) => cycle))]
    .filter((cycle) => cycle !== null)
    .sort((a, b) => a - b);
  const failed = traces.flatMap(({ problem }) => problem ?? []);
  const unready = traces.filter(({ state }) => state !== "ready");
  const items = traces
    .filter(({ hasFile }) => hasFile)
    .map(({ id, title, numBytes }) => ({
      id,
      label: `${title} (${formatBytes(numBytes)})`,
      run: () => window.location.assign(fileUrl(run.id, id)),
    }));
  const merged = {
    id: "merged",
    label: "All ranks merged, on one clock",
    run: () => window.location.assign(mergedUrl(run.id)),
  };
  return (
    <header>
      <div class="row trace-bar">
        <Tabs view={view} />
        {props.children}
        {cycles.length > 1 && (
          <Choice
            label="Cycle"
            value={view.params.get("cycle") ?? ""}
            of={[["", "newest"], ...cycles]}
            onChange={(cycle) => {
              const nowhere = { w0: null, w1: null, slice: null, r0: null, r1: null };
              view.setParams({ cycle, ...nowhere }, "push");
            }}
          />
        )}
        {traces.length > 0 && (
          <span class="end trace-pair">
            <button
              type="button"
              class="button"
              title="In a tab of its own; the bytes go from this browser to that tab"
              onClick={() => openPerfetto(answer, run, view.say)}
            >
              Open in Perfetto
            </button>
            <Menu
              label="Download traces"
              empty="Nothing to download."
              items={[...items, merged]}
            >
              <Icon name="download" />
            </Menu>
          </span>
        )}
      </div>
      <Sources of={unready} />
      {failed.length > 0 && <ProblemList problems={failed} />}
      <ProblemLine problems={answer.problems} view={view} />
    </header>
  );
}

export function Tabs({ view }: { readonly view: ViewProps }) {
  return <Switch view={view} of={ASKED.tab} label="Trace view" />;
}

export function tracesOf({ sources }: TraceResponse): readonly TraceSource[] {
  return sources.filter(({ kind }) => kind !== "counters");
}

export function Sources({ of }: { readonly of: readonly TraceSource[] }) {
  return of.map(({ id, title, state, facts, notes, doing, progress }) => (
    <span key={id} class="trace-source" title={[...facts, ...notes].join("\n")}>
      {state === "failed" && <Icon name="warning" sizePx={14} />}
      {state === "ready" && notes.length > 0 && <Icon name="info" sizePx={14} />}
      {title}
      {state === "opening" && (
        <>
          {" "}
          {doing === "" ? "opening" : doing}{" "}
          <progress max={1} value={progress} aria-label="Opening" />
        </>
      )}
      {state === "failed" && " cannot be opened"}
    </span>
  ));
}

export function Tools({ trace }: { readonly trace: Timeline }) {
  const { view, base, state, setState, searchAnswer, next, step, instant } = trace;
  const hits = useMemo(
    () => (searchAnswer === null ? [] : hitsOf(searchAnswer, base)),
    [searchAnswer, base],
  );
  const box = useRef<HTMLInputElement>(null);
  useCommands(view.commands, () =>
    commandsOf("trace", "Trace", [
      [
        "search",
        "Search names of slices and instants",
        () => box.current?.select(),
        "/",
      ],
    ]),
  );

  function onKeyDown(event: KeyboardEvent): void {
    if (event.key === "Enter") {
      event.preventDefault();
      next(event.shiftKey ? -1 : 1);
    } else if (event.key === "Escape") {
      setState({ find: "" });
      box.current?.blur();
    } else return;
    event.stopPropagation();
  }

  return (
    <>
      <input
        ref={box}
        type="search"
        value={state.find}
        placeholder="Find slices by name (/)"
        aria-label="Find slices by name"
        onInput={(event) => setState({ find: event.currentTarget.value })}
        onKeyDown={onKeyDown}
      />
      {state.find !== "" && (
        <Pair of="found" keys={["Shift+Enter", "Enter"]} move={next}>
          <span class="trace-hits" role="status">
            {searchAnswer === null
              ? "searching"
              : hitWords(hitOf(hits, state.slice), searchAnswer.numHits)}
          </span>
        </Pair>
      )}
      <span>
        <ZoomButtons zoom={trace.zoom} fit={trace.fit} />
      </span>
      {trace.answer.steps.number.length > 0 && (
        <Pair of="step" keys={["[", "]"]} move={step} />
      )}
      {trace.hasInstants && <Pair of="instant" keys={[",", "."]} move={instant} />}
      <IconButton
        label="View as table: sum up what is in sight by name (T); shift and drag sums up a part"
        icon="table"
        onClick={trace.sumUp}
      />
    </>
  );
}

/** `3 of 1,204`. */
export function hitWords(index: number, numHits: number): string {
  if (numHits === 0) return "nothing found";
  const all = formatInteger(numHits);
  return index < 0 ? `${all} found` : `${formatInteger(index + 1)} of ${all}`;
}

function Pair(props: {
  readonly of: string;
  readonly keys: readonly [before: string, after: string];
  readonly move: (sign: number) => void;
  readonly children?: ComponentChildren;
}) {
  const { of, keys, move } = props;
  const button = (sign: -1 | 1) => (
    <IconButton
      label={`${sign < 0 ? "Previous" : "Next"} ${of} (${keys[sign < 0 ? 0 : 1]})`}
      icon={sign < 0 ? "left" : "right"}
      onClick={() => move(sign)}
    />
  );
  return (
    <span class="trace-pair quiet">
      {button(-1)}
      {props.children ?? of}
      {button(1)}
    </span>
  );
}
