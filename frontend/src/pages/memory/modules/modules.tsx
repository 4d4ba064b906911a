/**
 * Memory by module of one rank, by default at the highest tracked peak; where the run
 * has profiler traces, also time by module.
 */

import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import type { ModulesResponse } from "../../../api/types.gen";
import { useLive } from "../../../api/live/use_live";
import { commandsOf, useCommands } from "../../../base/commands";
import { Icon } from "../../../widgets/icon/icon";
import { ProblemList } from "../../../widgets/problem_list/problem_list";
import { Waiting } from "../../../widgets/state/state";
import { AbsentList } from "../../shared/panels/absent_list";
import { ALL_LEVELS, Segmented, TextButton } from "../../shared/controls/choices";
import { NotCollected } from "../../shared/panels/not_collected";
import { TreeTable } from "../../shared/table/answer_table";
import { numbersOf } from "../../shared/table/columns";
import { usePageState } from "../../shared/page_state";
import type { ViewProps } from "../../shared/view_props";
import "../../shared/panels/inspector.css";
import { Pinned, useMomentStep } from "../history/pinned";
import {
  categorySwatches,
  moduleColours,
  moduleColumn,
  Modules,
  moduleTitles,
} from "./columns";
import { Controls } from "./controls";
import { Details } from "./details";
import "./modules.css";
import {
  FIRST_DEPTH,
  measureState,
  MODULES,
  stateWords,
  type ModulesPage,
} from "./params";
import { ModuleTimes } from "./time/times";
import { WindowTimeline } from "./window_timeline";

const TABLE_PX = 420;

const PART_WORDS = {
  memory: ["Memory", "What each module holds, as the recorder tracked it"],
  time: ["Time", "How long each module took, as a profiler’s trace says"],
} as const;

export function ModulesView(view: ViewProps) {
  const { client, run, ranks, pollMs } = view;
  const [state, setState] = usePageState(view, MODULES);
  const page = { view, state, setState };
  const traces = useLive(client, "traces", { run: run.id }, pollMs).data;
  const hasTraces = traces?.files.some(({ timeline }) => !timeline) === true;
  const pinned = useMomentStep(view);
  const { window, call, device, measure, against } = state;
  const query = {
    run: run.id,
    rank: ranks.rank,
    window,
    call,
    device,
    measure,
    against,
    state: state.state,
    step: pinned?.step ?? null,
  };
  const memory = useLive(
    client,
    "modules",
    state.part === "time" ? null : query,
    pollMs,
  );
  const { data, stale, error } = memory;
  const hasNone = hasTraces && data?.window === null;
  const part = state.part ?? (hasNone ? "time" : "memory");
  const choice = (hasTraces || part === "time") && (
    <Segmented
      label="Module quantity"
      chosen={part}
      labels={PART_WORDS}
      onChoose={(option) => setState({ part: option }, "push")}
    />
  );
  if (part === "time") {
    return (
      <div class="column">
        {choice}
        <ModuleTimes {...page} />
      </div>
    );
  }
  return (
    <div class={`column modules ${stale ? "stale" : ""}`} aria-busy={stale}>
      <Waiting error={error} hasContent={data !== null} blocksPx={[64, 480]} />
      {data?.window === null && (
        <>
          {choice}
          <NotCollected
            title="No module memory in this run"
            absent={data.absent}
            snippet={SNIPPET}
            note="By default the second step is tracked; the settings of the schedule choose others, and more."
          />
        </>
      )}
      {typeof data?.window === "string" && (
        <Body {...page} data={data}>
          {choice}
          <Pinned
            view={view}
            pinned={pinned}
            step={data.windows.find(({ id }) => id === data.window)?.step ?? null}
            absent={window === null ? "Modules were not tracked in it" : null}
          />
        </Body>
      )}
      {data !== null && data.problems.length > 0 && (
        <ProblemList problems={data.problems} />
      )}
    </div>
  );
}

const SNIPPET = `with mb.record(
    logdir, model=model, optimizer=optimizer, modules=True
) as rec:`;

function Body(
  page: ModulesPage & {
    readonly data: ModulesResponse;
    readonly children: ComponentChildren;
  },
) {
  const { view, state, setState, data } = page;
  const { theme } = view;
  const { flat, find } = state;
  const modules = useMemo(() => new Modules(data), [data]);
  const selected = modules.idOf(state.module);
  const callShown = numbersOf(data.table, "call");
  const timeUs = numbersOf(data.table, "time_us");
  const colours = useMemo(() => moduleColours(data, theme), [data, theme]);
  const swatches = useMemo(() => categorySwatches(data, theme), [data, theme]);
  const before = useMemo(() => [moduleColumn(modules, flat)], [modules, flat]);
  const titles = useMemo(() => moduleTitles(data, modules), [data, modules]);
  const about = {
    window:
      data.windows.find((moduleWindow) => moduleWindow.id === data.window) ??
      data.window,
    rank: data.rank,
    state: data.state,
    call: data.call,
    device: data.device,
    measure: data.measure,
    baseline: data.baseline,
    factWords: data.factWords,
  };
  useModuleCommands(page);
  const select = (module: string | null): void => setState({ module });
  const shown = selected === null || modules.isFold(selected) ? null : selected;
  const hasTimeline = data.facts?.source !== "imported";
  const { rank } = view.ranks;
  return (
    <>
      <header class="modules-head row">
        <Lead data={data} modules={modules} onModule={select} />
        {page.children}
        <p class="quiet">{data.lead?.rest}</p>
      </header>
      {rank !== null && rank !== data.rank && (
        <Caveat
          head={`Rank ${rank} did not track its modules in this step:`}
          text={`rank ${data.rank ?? 0} is shown.`}
        />
      )}
      {data.caveats.map((caveat) => (
        <Caveat key={caveat.head} {...caveat} />
      ))}
      <div class={shown === null ? "" : "inspected"}>
        <div class="column">
          <TreeTable
            view={view}
            table={data.table}
            {...(find !== "" && { empty: "No module matches." })}
            word="sort"
            before={before}
            colours={colours}
            swatches={swatches}
            titles={titles}
            find={find}
            flat={flat}
            tree={modules.tree}
            names={modules.fqns}
            texts={modules.texts}
            isFold={(row) => modules.isFold(row)}
            depth={state.depth ?? (flat ? ALL_LEVELS : FIRST_DEPTH)}
            opened={
              state.depth === null ? modules.opened(data.lead?.module ?? null) : []
            }
            selected={selected}
            onSelect={(id) => select(modules.fqns[id] ?? null)}
            head={(numRows) => (
              <Controls {...page} modules={modules} numRows={numRows} />
            )}
            shell={view}
            fileName={`modules rank ${data.rank ?? 0} ${stateWords(data, data.state)}`}
            about={about}
            heightPx={TABLE_PX}
          />
          {hasTimeline && (
            <WindowTimeline
              {...page}
              momentUs={timeUs[shown ?? (data.split === null ? -1 : 0)] ?? NaN}
            />
          )}
          <p class="row small quiet">
            {data.factWords.map((fact) => (
              <span key={fact}>{fact}</span>
            ))}
          </p>
          <AbsentList absent={data.absent} />
        </div>
        {shown !== null && (
          <Details
            {...page}
            fqn={modules.fqns[shown] ?? ""}
            callShown={callShown[shown] ?? -1}
          />
        )}
      </div>
    </>
  );
}

/** `Activations of 40 × layers.* are 37.4 GiB of the 65.9 GiB peak, step 100, rank 41.` */
function Lead(props: {
  readonly data: ModulesResponse;
  readonly modules: Modules;
  readonly onModule: (fqn: string) => void;
}) {
  const { lead } = props.data;
  if (lead === null) return null;
  const { before, module, after } = lead;
  const id = props.modules.idOf(module);
  return (
    <p class="lead">
      {before}
      {module !== null && (
        <TextButton title={module} press={() => props.onModule(module)}>
          {id === null ? module : props.modules.label(id)}
        </TextButton>
      )}
      {after}
    </p>
  );
}

function Caveat({ head, text }: { readonly head: string; readonly text: string }) {
  return (
    <p>
      <span class="tone-warn">
        <Icon name="warning" />
      </span>{" "}
      <strong>{head}</strong> {text}
    </p>
  );
}

function useModuleCommands({
  view,
  state,
  setState,
  data,
}: ModulesPage & { readonly data: ModulesResponse }): void {
  const step = (side: -1 | 1): void => {
    const index = data.windows.findIndex(
      (moduleWindow) => moduleWindow.id === data.window,
    );
    const next = data.windows[index + side];
    if (next === undefined) {
      view.say(`This is the ${side < 0 ? "first" : "last"} tracked step`);
    } else setState({ window: next.id, call: null, range: null }, "push");
  };
  const other = data.measure === "held" ? "total" : "held";
  useCommands(view.commands, () =>
    commandsOf("modules", "Modules", [
      [
        "flat",
        "Switch between tree and list",
        () => setState({ flat: !state.flat, depth: null }),
      ],
      [
        "measure",
        "Switch between memory by module and the rank’s total",
        () => setState(measureState(other, data), "push"),
      ],
      ["before", "Previous tracked step", () => step(-1), "{"],
      ["after", "Next tracked step", () => step(1), "}"],
      ["close", "Close the details", () => setState({ module: null }), "Escape"],
    ]),
  );
}
