/**
 * Modules: what each module holds of a rank's memory, first of all at the highest peak
 * that was tracked. A sentence says what takes most; below it every module at one moment,
 * and the categories through that step; a row opens that module over tracked steps and
 * ranks. Where the run has profiler traces: time by module.
 */

import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { ModulesResponse } from "../../../api/types.gen";
import { useLive } from "../../../api/use_live";
import { useCommands } from "../../../base/use_commands";
import type { ExportSource } from "../../../widgets/export/source";
import { ProblemList } from "../../../widgets/problem_list/problem_list";
import { Waiting } from "../../../widgets/state/state";
import { TreeTable } from "../../../widgets/tree_table/tree_table";
import { AbsentList } from "../../shared/panels/absent_list";
import { Segmented } from "../../shared/controls/choices";
import { NotCollected } from "../../shared/panels/not_collected";
import type { ViewProps } from "../../shared/view_props";
import { moduleColumns } from "./columns";
import { moduleCommands } from "./commands";
import { Controls } from "./controls";
import { Details } from "./details";
import { Caveats, Facts, Lead, splitWords } from "./lead";
import "./modules.css";
import {
  MODEL_ORDER,
  modulesQuery,
  readModules,
  sortAfterClick,
  type ModulesParams,
} from "./params";
import { bytesColumns, Modules, rowsInSight } from "./rows";
import { ModuleTimes } from "./time/times";
import { WindowTimeline } from "./window_timeline";
import { isWholeWindow } from "./words";

const TABLE_PX = 420;

const PART_WORDS = {
  memory: ["Memory", "What each module holds, as the recorder tracked it"],
  time: ["Time", "How long each module took, as a profiler’s trace says"],
} as const;

export function ModulesView(props: ViewProps) {
  const { client, run, setParams } = props;
  const word = props.params.get("part");
  const traces = useLive(client, "traces", { run: run.id }, props.pollMs).data;
  const hasTraces = traces?.files.some(({ timeline }) => !timeline) === true;
  const params = useMemo(() => readModules(props.params), [props.params]);
  const query = modulesQuery(run.id, props.ranks.rank, params);
  const memory = useLive(
    client,
    "modules",
    word === "time" ? null : query,
    props.pollMs,
  );
  const { data, stale, error } = memory;
  const hasMemory = data !== null && data.window !== null;
  const hasNone = hasTraces && data?.window === null;
  const part = word === "time" || (hasNone && word !== "memory") ? "time" : "memory";
  const choice = (hasTraces || part === "time") && (
    <Segmented
      label="What of the modules"
      options={["memory", "time"] as const}
      chosen={part}
      words={(one) => PART_WORDS[one]}
      onChoose={(one) => setParams({ part: one }, "push")}
    />
  );
  if (part === "time") {
    return (
      <div class="modules">
        {choice}
        <ModuleTimes {...props} />
      </div>
    );
  }
  return (
    <div class={stale ? "modules stale" : "modules"} aria-busy={stale}>
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
      {hasMemory && (
        <Body view={props} data={data} params={params}>
          {choice}
        </Body>
      )}
      {data !== null && data.problems.length > 0 && (
        <ProblemList problems={data.problems} />
      )}
    </div>
  );
}

const SNIPPET = `with collector.record(
    logdir, model=model, optimizer=optimizer, modules=True
) as rec:`;

interface BodyProps {
  readonly view: ViewProps;
  readonly data: ModulesResponse;
  readonly params: ModulesParams;
  /** Stands at the end of the first line. */
  readonly children: ComponentChildren;
}

function Body({ view, data, params, children }: BodyProps) {
  const { theme, byteUnit, setParams } = view;
  const largest = data.split?.largest.module ?? null;
  // Kept while a poll brings the same tree.
  const modules = useMemo(() => new Modules(data.tree, largest), [data.tree, largest]);
  const bytes = useMemo(() => bytesColumns(data), [data]);
  const [toggled, setToggled] = useState<ReadonlySet<string>>(new Set());
  useEffect(() => setToggled(new Set()), [params.depth, params.flat]);
  const columns = useMemo(
    () => moduleColumns({ data, modules, bytes, flat: params.flat, theme, byteUnit }),
    [data, modules, bytes, params.flat, theme, byteUnit],
  );
  const { flat, depth, find, sort, descending } = params;
  const rows = useMemo(
    () => rowsInSight(modules, bytes, params, toggled),
    [modules, bytes, flat, depth, find, sort, descending, toggled],
  );
  const selected = params.module === "" ? null : modules.idOf(params.module);
  const timelineExport = useRef<ExportSource | null>(null);
  const hasTimeline = data.facts?.source !== "imported";
  useCommands(
    view.commands,
    () =>
      moduleCommands({
        now: { data, modules, params, view },
        timeline: hasTimeline ? () => timelineExport.current : null,
      }),
    [hasTimeline],
  );
  useOpenSelected(modules, selected, params, setToggled);

  const toggle = (id: number): void => {
    const fqn = modules.fqn(id);
    const next = new Set(toggled);
    if (!next.delete(fqn)) next.add(fqn);
    setToggled(next);
  };
  const select = (module: string): void => setParams({ module });
  const momentOf = selected ?? (isWholeWindow(data.state) ? 0 : -1);
  return (
    <>
      <header class="modules-head">
        <Lead data={data} modules={modules} byteUnit={byteUnit} onModule={select} />
        {children}
        <p class="quiet">{splitWords(data, byteUnit)}</p>
      </header>
      <MissingRank data={data} rank={view.ranks.rank} />
      <Caveats data={data} />
      <Controls
        data={data}
        modules={modules}
        params={params}
        setParams={setParams}
        commands={view.commands}
        numRows={rows.length}
      />
      <div class={selected === null ? "modules-main" : "modules-main has-details"}>
        <TreeTable
          label="Modules"
          columns={columns}
          rows={rows}
          selected={selected}
          onSelect={(id) => select(modules.fqn(id))}
          onToggle={toggle}
          sort={sort === MODEL_ORDER ? null : { key: sort, descending }}
          onSort={(key) => setParams({ sort: sortAfterClick(params, key) })}
          empty={find === "" ? "This step has no modules." : "No module matches."}
          heightPx={TABLE_PX}
        />
        {selected !== null && (
          <Details
            view={view}
            data={data}
            fqn={params.module}
            callShown={data.callShown[selected] ?? -1}
            close={() => setParams({ module: null })}
          />
        )}
        <div class="modules-below">
          {hasTimeline && (
            <WindowTimeline
              view={view}
              data={data}
              params={params}
              selected={params.module === "" ? null : params.module}
              momentUs={data.timeUs[momentOf] ?? NaN}
              exporter={timelineExport}
            />
          )}
          <Facts data={data} byteUnit={byteUnit} />
          <AbsentList absent={data.absent} />
        </div>
      </div>
    </>
  );
}

/** A module chosen elsewhere (a link, the timeline) opens the way to itself. */
function useOpenSelected(
  modules: Modules,
  selected: number | null,
  params: ModulesParams,
  setToggled: (next: (before: ReadonlySet<string>) => ReadonlySet<string>) => void,
): void {
  useEffect(() => {
    if (selected === null || params.flat) return;
    setToggled((before) => {
      const next = new Set(before);
      for (const id of modules.tree.ancestors(selected)) {
        const fqn = modules.fqn(id);
        if (modules.isOpen(id, params.depth, next.has(fqn))) continue;
        if (!next.delete(fqn)) next.add(fqn);
      }
      return next;
    });
  }, [modules, selected, params.flat, params.depth]);
}

/** The rank chosen for all pages may not have been tracked. */
function MissingRank({
  data,
  rank,
}: {
  readonly data: ModulesResponse;
  readonly rank: number | null;
}) {
  if (rank === null || rank === data.rank) return null;
  return (
    <p class="modules-caveat">
      Rank {rank} did not track its modules in this step; rank {data.rank} is shown.
    </p>
  );
}
