/**
 * Modules: what each module holds of a rank's memory, first of all at the peak of a
 * tracked step. Every module at one moment, and below the categories through that step;
 * a row opens that module over tracked steps and ranks. Where the run has profiler traces: time by module.
 */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { ModulesResponse } from "../../../api/types.gen";
import { useLive } from "../../../api/use_live";
import type { Live } from "../../../api/watch";
import { useCommands } from "../../../base/use_commands";
import { useWidth } from "../../../widgets/line_chart/use_size";
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
import { Caveats, Facts } from "./facts";
import "./modules.css";
import {
  MODEL_ORDER,
  modulesQuery,
  readModules,
  sortAfterClick,
  type ModulesParams,
} from "./params";
import { bytesColumns, Modules, rowsInSight } from "./rows";
import { Split } from "./split";
import { TableBar } from "./table_bar";
import { ModuleTimes } from "./time/times";
import { WindowTimeline } from "./window_timeline";
import { isWholeWindow } from "./words";

const TABLE_PX = 420;
/** With the details open, so that both are in sight on a small screen. */
const TABLE_BESIDE_PX = 320;

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
  const hasNone = hasTraces && memory.data !== null && memory.data.window === null;
  const part = word === "time" || (hasNone && word !== "memory") ? "time" : "memory";
  return (
    <>
      {(hasTraces || part === "time") && (
        <div class="modules-controls modules-part-choice">
          <Segmented
            label="What of the modules"
            options={["memory", "time"] as const}
            chosen={part}
            words={(one) => PART_WORDS[one]}
            onChoose={(one) => setParams({ part: one }, "push")}
          />
        </div>
      )}
      {part === "time" ? (
        <ModuleTimes {...props} />
      ) : (
        <Memory view={props} params={params} live={memory} />
      )}
    </>
  );
}

function Memory(props: {
  readonly view: ViewProps;
  readonly params: ModulesParams;
  readonly live: Live<ModulesResponse>;
}) {
  const { view, params } = props;
  const { data, stale, error } = props.live;
  const box = useRef<HTMLDivElement>(null);
  const px = useWidth(box);
  return (
    <div class={stale ? "modules stale" : "modules"} ref={box} aria-busy={stale}>
      <Waiting error={error} hasContent={data !== null} blocksPx={[64, 480]} />
      {data !== null &&
        (data.window === null ? (
          <NotCollected
            title="No module memory in this run"
            absent={data.absent}
            snippet={SNIPPET}
            note="By default the second step is tracked; the settings of the schedule choose others, and more."
          />
        ) : (
          <Body view={view} data={data} params={params} px={px} />
        ))}
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
  readonly px: number;
}

/** The tree of an answer; kept while a poll brings the same one. */
function useModules(data: ModulesResponse): Modules {
  return useMemo(() => new Modules(data.tree), [data.tree]);
}

function Body({ view, data, params, px }: BodyProps) {
  const { theme, byteUnit, setParams } = view;
  const modules = useModules(data);
  const bytes = useMemo(() => bytesColumns(data), [data]);
  const [toggled, setToggled] = useState<ReadonlySet<string>>(new Set());
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
  const findBox = useRef<HTMLInputElement>(null);
  const hasTimeline = data.facts?.source !== "imported";
  useCommands(
    view.commands,
    () =>
      moduleCommands({
        now: { data, modules, params, view },
        timeline: hasTimeline ? () => timelineExport.current : null,
        find: () => findBox.current?.select(),
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
  const momentOf = selected ?? (isWholeWindow(data.state) ? 0 : -1);
  return (
    <>
      <Controls
        data={data}
        params={params}
        setParams={setParams}
        rank={view.ranks.rank}
        chooseRank={view.chooseRank}
      />
      <MissingRank data={data} rank={view.ranks.rank} />
      <Split data={data} byteUnit={byteUnit} />
      <Caveats data={data} />
      <section aria-label="Modules">
        <TableBar
          data={data}
          modules={modules}
          params={params}
          setParams={(changes) => {
            if ("depth" in changes) setToggled(new Set());
            setParams(changes);
          }}
          numRows={rows.length}
          findBox={findBox}
        />
        <TreeTable
          label="Modules"
          columns={columns}
          rows={rows}
          selected={selected}
          onSelect={(id) => setParams({ module: modules.fqn(id) })}
          onToggle={toggle}
          sort={sort === MODEL_ORDER ? null : { key: sort, descending }}
          onSort={(key) => setParams({ sort: sortAfterClick(params, key) })}
          empty={find === "" ? "This step has no modules." : "No module matches."}
          heightPx={selected === null ? TABLE_PX : TABLE_BESIDE_PX}
        />
      </section>
      <AbsentList absent={data.absent} />
      {hasTimeline && (
        <WindowTimeline
          view={view}
          data={data}
          params={params}
          px={px}
          selected={params.module === "" ? null : params.module}
          momentUs={data.timeUs[momentOf] ?? NaN}
          exporter={timelineExport}
        />
      )}
      <Facts data={data} byteUnit={byteUnit} />
      {selected !== null && (
        <Details
          view={view}
          data={data}
          fqn={params.module}
          callShown={data.callShown[selected] ?? -1}
          close={() => setParams({ module: null })}
        />
      )}
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
