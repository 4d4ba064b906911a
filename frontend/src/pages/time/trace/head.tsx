/** What the timeline is made of: files and recordings, how far they are, what is wrong. */

import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";
import type { TraceResponse, TraceSource } from "../../../api/types.gen";
import { formatBytes, formatInteger } from "../../../base/bytes";
import { commandsOf } from "../../../base/commands";
import { formatSeconds } from "../../../base/durations";
import { useCommands } from "../../../base/use_commands";
import { unrealOf } from "../../../model/words/origin";
import { Icon, type IconName } from "../../../widgets/icon/icon";
import { Menu } from "../../../widgets/menu/menu";
import { ProblemList } from "../../../widgets/problem_list/problem_list";
import { Choice } from "../../shared/controls/choices";
import type { ViewProps } from "../../shared/view_props";
import { fileUrl, mergedUrl, openPerfetto } from "./perfetto";
import { hitOf, type Timeline } from "./state/timeline";
import { hitWords } from "./words";

export function Sources(props: {
  readonly answer: TraceResponse;
  readonly view: ViewProps;
  readonly tabs: ComponentChildren;
  readonly cycle: number | null;
}) {
  const { answer, view, cycle } = props;
  const { run } = view;
  const { shownRanks, numRanks } = answer;
  const traces = answer.sources.filter(({ kind }) => kind !== "counters");
  const cycles = [...new Set(answer.choices.map((one) => one.cycle))]
    .filter((one) => one !== null)
    .sort((a, b) => a - b);
  const failed = traces.flatMap(({ problem }) => (problem === null ? [] : [problem]));
  const problems = [...failed, ...answer.problems];
  const opening = traces.filter(({ state }) => state === "opening");
  const rest = traces.filter(({ state }) => state !== "opening");
  const said = [
    answer.focus?.words ?? "",
    shownRanks.length < numRanks
      ? `${shownRanks.length} of ${formatInteger(numRanks)} ranks: choose others at the left`
      : "",
    unrealOf(run) ?? "",
  ];
  const items = traces
    .filter(({ hasFile }) => hasFile)
    .map((source) => ({
      id: source.id,
      label: `${sourceTitle(source)} (${formatBytes(source.numBytes)})`,
      run: () => window.location.assign(fileUrl(run.id, source.id)),
    }));
  const merged = {
    id: "merged",
    label: "All ranks merged, on one clock",
    run: () => window.location.assign(mergedUrl(run.id)),
  };
  return (
    <header class="trace-sources">
      <div class="trace-row">
        {props.tabs}
        <span class="trace-said quiet">
          {opening.map((source) => (
            <OneSource key={source.id} source={source} />
          ))}
          {said.filter(Boolean).map((words) => (
            <span key={words} title={words}>
              {words}
            </span>
          ))}
          {rest.map((source) => (
            <OneSource key={source.id} source={source} />
          ))}
        </span>
        {cycles.length > 1 && (
          <Choice
            label="Cycle"
            value={cycle?.toString() ?? ""}
            onChange={(value) => {
              const nowhere = { w0: null, w1: null, slice: null, r0: null, r1: null };
              view.setParams({ cycle: value, ...nowhere }, "push");
            }}
          >
            <option value="">newest</option>
            {cycles.map((one) => (
              <option key={one} value={one}>
                {one}
              </option>
            ))}
          </Choice>
        )}
        {traces.length > 0 && (
          <span class="trace-files">
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
      {problems.length > 0 && <ProblemList problems={problems} />}
    </header>
  );
}

/** `rank 0: rank0.pt.trace.json.gz`. */
function sourceTitle({ kind, name, rank }: TraceSource): string {
  const of = rank === null ? "" : `rank ${rank}: `;
  return of + (kind === "spans" ? "spans" : name);
}

function OneSource({ source }: { readonly source: TraceSource }) {
  const { state, progress, doing, clock, notes, numSlices, numBytes } = source;
  const facts = [
    `${formatInteger(numSlices)} slices`,
    numBytes > 0 ? formatBytes(numBytes) : "",
    clock === null ? "" : clockWords(clock),
    ...notes,
  ];
  return (
    <span class="trace-source" title={facts.filter(Boolean).join("\n")}>
      {state === "failed" && <Icon name="warning" sizePx={14} />}
      {state === "ready" && notes.length > 0 && <Icon name="info" sizePx={14} />}
      <span>{sourceTitle(source)}</span>
      {state === "opening" && (
        <>
          <span class="quiet">{doing === "" ? "opening" : doing}</span>
          <progress max={1} value={progress} aria-label="Opening" />
        </>
      )}
      {state === "failed" && <span class="quiet">cannot be opened</span>}
    </span>
  );
}

function clockWords(clock: NonNullable<TraceSource["clock"]>): string {
  const { method, offsetNs, errorNs } = clock;
  if (method === "none")
    return "its times are no wall clock’s: put where the others begin";
  const moved =
    offsetNs === 0
      ? "clock as it is"
      : `clock moved by ${formatSeconds(offsetNs / 1e9)}`;
  return errorNs === null
    ? `${moved}, how far off is not known`
    : `${moved}, at most ${formatSeconds(errorNs / 1e9)} off (${method})`;
}

/** Search, and what the pointer does on the plot, as buttons. */
export function Toolbar({ trace }: { readonly trace: Timeline }) {
  const { view, state, setState, hits, next, commands } = trace;
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

  function act(icon: IconName, id: string) {
    const command = commands.find((one) => one.id === `trace.${id}`);
    if (command === undefined) return null;
    const key = command.key === undefined ? "" : ` (${command.key.toUpperCase()})`;
    return (
      <button
        type="button"
        class="icon-button small"
        aria-label={command.label}
        title={command.label + key}
        onClick={command.run}
      >
        <Icon name={icon} sizePx={14} />
      </button>
    );
  }

  return (
    <div class="trace-row">
      <Icon name="search" sizePx={14} />
      <input
        ref={box}
        type="search"
        class="trace-find"
        value={state.find}
        placeholder="Find slices by name"
        aria-label="Find slices by name"
        title="Find slices by name (/)"
        onInput={(event) => setState({ find: event.currentTarget.value })}
        onKeyDown={(event) => {
          if (event.key === "Enter") {
            event.preventDefault();
            next(event.shiftKey ? -1 : 1);
          } else if (event.key === "Escape") {
            setState({ find: "" });
            event.currentTarget.blur();
          } else return;
          event.stopPropagation();
        }}
      />
      {state.find !== "" && (
        <span class="trace-acts">
          <span class="trace-hits quiet" role="status">
            {hits === null
              ? "searching"
              : hitWords(hitOf(hits, state.slice), hits.numHits)}
          </span>
          {act("left", "before")}
          {act("right", "next")}
        </span>
      )}
      <span class="trace-acts">
        {act("plus", "in")}
        {act("minus", "out")}
        {act("fit", "fit")}
      </span>
      {trace.answer.steps.number.length > 0 && (
        <span class="trace-acts">
          {act("left", "earlier")}
          <span class="quiet">step</span>
          {act("right", "later")}
        </span>
      )}
      {trace.hasInstants && (
        <span class="trace-acts">
          {act("left", "instant_before")}
          <span class="quiet">instant</span>
          {act("right", "instant")}
        </span>
      )}
      <button
        type="button"
        class="button"
        title="Sum up what is in sight by name, as a table (T). Shift and drag sums up a part."
        onClick={commands.find(({ id }) => id === "trace.table")?.run}
      >
        <Icon name="table" sizePx={14} /> View as table
      </button>
    </div>
  );
}
