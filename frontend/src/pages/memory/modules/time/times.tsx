/** Modules by time: forward and backward, on the host and on the device. */

import { useMemo, useState } from "preact/hooks";
import type { ModuleTimesResponse } from "../../../../api/types.gen";
import { formatInteger } from "../../../../base/bytes";
import { useCommands } from "../../../../base/use_commands";
import { modulePaths } from "../../../../model/module_paths";
import { originOf } from "../../../../model/words/origin";
import { clicked, sortOf, sortWord } from "../../../../model/shown_rows";
import { Tree } from "../../../../model/tree";
import { exportCommands } from "../../../../widgets/export/export_commands";
import { ExportMenu } from "../../../../widgets/export/export_menu";
import { TABLE_FORMATS, type ExportSource } from "../../../../widgets/export/source";
import { Nothing } from "../../../../widgets/state/state";
import { TreeTable } from "../../../../widgets/tree_table/tree_table";
import { BACKWARD_WORDS } from "../../../time/profiled/module_backward";
import { SearchBox } from "../../../shared/controls/search_box";
import { TraceFrame, useProfiled } from "../../../time/profiled/trace_choice";
import type { ViewProps } from "../../../shared/view_props";
import { FIRST_DEPTH, readModules } from "../params";
import { DepthSelect } from "../controls";
import { TimeFlame } from "./flame";
import { TIME_KEYS, timeColumns, timeRows, timesTable, USUAL_TIMES } from "./rows";

const TABLE_PX = 640;

export function ModuleTimes(props: ViewProps) {
  const { client, run, ranks, params, setParams } = props;
  const source = params.get("source") ?? null;
  const live = useProfiled(
    client,
    "module_times",
    { run: run.id, rank: ranks.rank, source },
    props.pollMs,
  );
  return (
    <TraceFrame live={live} what="times of modules" setParams={setParams}>
      {(data) => (data.hasModules ? <Times data={data} view={props} /> : <NoModules />)}
    </TraceFrame>
  );
}

function NoModules() {
  return (
    <Nothing title="No modules in this trace">
      <p>
        It was recorded without Python stacks, which hold the calls of modules. Record
        them with <code>torch_profiler={'{"enabled": True, "with_stack": True}'}</code>;
        where you call torch.profiler yourself, with <code>with_stack=True</code>.
      </p>
    </Nothing>
  );
}

function Times(props: {
  readonly data: ModuleTimesResponse;
  readonly view: ViewProps;
}) {
  const { data, view } = props;
  const { theme, params, setParams, commands } = view;
  const words = useMemo(() => readModules(params), [params]);
  const { find } = words;
  const depth = words.depth ?? FIRST_DEPTH;
  const sort = sortOf(params.get("time_sort"), TIME_KEYS, USUAL_TIMES);
  const [toggled, setToggled] = useState<ReadonlySet<string>>(new Set());
  const [selected, setSelected] = useState<number | null>(null);
  const tree = useMemo(() => new Tree(data.parent), [data.parent]);
  const paths = useMemo(() => modulePaths(data.name, data.parent), [data]);
  const columns = useMemo(() => timeColumns(data, paths, theme), [data, paths, theme]);
  const rows = useMemo(
    () => timeRows(data, tree, paths, { sort, find, depth, toggled }),
    [data, tree, paths, sort.key, sort.descending, find, depth, toggled],
  );
  const source: ExportSource = {
    origin: originOf(data.run),
    name: "time of modules",
    table: () => timesTable(data, paths),
    about: () => ({ source: data.choice.source }),
  };
  useCommands(commands, () =>
    exportCommands({
      view: "modules",
      subject: "times of modules",
      formats: TABLE_FORMATS,
      source: () => source,
      say: view.say,
    }),
  );
  const num = paths.length;
  return (
    <section aria-label="Time by module">
      <div class="panel-head trace-bar">
        <SearchBox
          label="Search modules"
          text={find}
          onText={(text) => setParams({ find: text === "" ? null : text })}
          commands={commands}
        />
        <DepthSelect
          maxDepth={tree.maxDepth}
          chosen={depth}
          setParams={(changes) => {
            setToggled(new Set());
            setParams(changes);
          }}
        />
        <span class="quiet" role="status">
          {formatInteger(num)} {num === 1 ? "module" : "modules"}
          {num < data.numModules && ` of ${formatInteger(data.numModules)}`}
          {BACKWARD_WORDS[data.backward] !== "" && `. ${BACKWARD_WORDS[data.backward]}`}
        </span>
        <span class="end">
          <ExportMenu subject="the times of modules" source={source} />
        </span>
      </div>
      <TreeTable
        label="Time by module"
        columns={columns}
        rows={rows}
        selected={selected}
        onSelect={setSelected}
        onToggle={(id) => {
          const path = paths[id] ?? "";
          const next = new Set(toggled);
          if (!next.delete(path)) next.add(path);
          setToggled(next);
        }}
        sort={sort}
        onSort={(key) => {
          const next = clicked(sort, key, key === "module");
          setParams({ time_sort: sortWord(next, USUAL_TIMES) });
        }}
        empty="No module matches."
        heightPx={TABLE_PX}
      />
      <TimeFlame
        data={data}
        tree={tree}
        paths={paths}
        theme={theme}
        selected={selected}
        onSelect={setSelected}
      />
    </section>
  );
}
