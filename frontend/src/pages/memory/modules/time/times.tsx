import { useMemo, useState } from "preact/hooks";
import type { ModuleTimesResponse } from "../../../../api/types.gen";
import { useLive } from "../../../../api/use_live";
import { formatInteger } from "../../../../base/bytes";
import { modulePaths } from "../../../../model/module_paths";
import { originOf } from "../../../../model/words/origin";
import { Tree } from "../../../../model/tree";
import { ExportMenu } from "../../../../widgets/export/export_menu";
import type { ExportSource } from "../../../../widgets/export/source";
import { tableOf } from "../../../../widgets/row_table/columns";
import { RowTable, type RowColumn } from "../../../../widgets/row_table/row_table";
import { useTree } from "../../../../widgets/row_table/use_sort";
import { Nothing } from "../../../../widgets/state/state";
import { columnsOf } from "../../../time/profiled/answer_table";
import { SearchBox } from "../../../shared/controls/search_box";
import { TraceFrame } from "../../../time/profiled/trace_choice";
import type { ViewProps } from "../../../shared/view_props";
import { DepthSelect } from "../controls";
import { FIRST_DEPTH, type ModulesPage } from "../params";
import { TimeFlame } from "./flame";

const TABLE_PX = 640;

export function ModuleTimes(page: ModulesPage) {
  const { client, run, ranks, pollMs } = page.view;
  const { source } = page.state;
  const query = { run: run.id, rank: ranks.rank, source };
  const live = useLive(client, "module_times", query, pollMs);
  return (
    <TraceFrame live={live} what="times of modules" view={page.view}>
      {(data) =>
        data.table.numRows > 0 ? <Times {...page} data={data} /> : <NoModules />
      }
    </TraceFrame>
  );
}

/** All columns of a trace with devices fit a screen of 1280 px. */
const MODULE_PX = 208;

export function timeColumns(
  { name, table }: ModuleTimesResponse,
  paths: readonly string[],
  view: Pick<ViewProps, "theme" | "byteUnit">,
): readonly RowColumn[] {
  const module: RowColumn = {
    ...{ key: "module", title: "Module", numeric: false, isTree: true },
    width: `minmax(${MODULE_PX}px, 3fr)`,
    values: name,
    exported: { name: "module", values: paths },
    cell: (id) => ({ text: name[id] ?? "", title: paths[id] ?? "" }),
  };
  return [module, ...columnsOf(table, view)];
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

function Times(props: ModulesPage & { readonly data: ModuleTimesResponse }) {
  const { data, view, state, setState } = props;
  const { find } = state;
  const depth = state.depth ?? FIRST_DEPTH;
  const [selected, setSelected] = useState<number | null>(null);
  const tree = useMemo(() => new Tree(data.parent), [data.parent]);
  const paths = useMemo(() => modulePaths(data.name, data.parent), [data]);
  const columns = useMemo(
    () => timeColumns(data, paths, view),
    [data, paths, view.theme],
  );
  const table = useTree({
    ...{ columns, tree, names: paths, find, depth, selected },
    usual: { key: data.table.usual, descending: true },
    word: state.timeSort,
    setWord: (timeSort) => setState({ timeSort }),
  });
  const source: ExportSource = {
    origin: originOf(data.run),
    name: "time of modules",
    table: () => tableOf(columns, [...paths.keys()]),
    about: () => ({ source: data.choice.source }),
  };
  const { numRows: num, numAll } = data.table;
  return (
    <section class="modules" aria-label="Time by module">
      <div class="row">
        <SearchBox
          label="Search modules"
          text={find}
          onText={(typed) => setState({ find: typed })}
          commands={view.commands}
        />
        <DepthSelect
          maxDepth={tree.maxDepth}
          chosen={depth}
          onChange={(chosen) => setState({ depth: chosen })}
        />
        <span class="quiet" role="status">
          {formatInteger(num)} {num === 1 ? "module" : "modules"}
          {num < numAll && ` of ${formatInteger(numAll)}`}
          {data.backward !== "" && `. ${data.backward}`}
        </span>
        <span class="end">
          <ExportMenu subject="the times of modules" source={source} shell={view} />
        </span>
      </div>
      <RowTable
        {...table}
        label="Time by module"
        onSelect={setSelected}
        empty="No module matches."
        heightPx={TABLE_PX}
      />
      <TimeFlame {...{ data, tree, paths, view, selected }} onSelect={setSelected} />
    </section>
  );
}
