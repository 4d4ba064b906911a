/** Modules by time: forward and backward, on the host and on the device. */

import { useMemo, useState } from "preact/hooks";
import type { ModuleTimesResponse } from "../../../../api/types.gen";
import { formatInteger } from "../../../../base/bytes";
import { modulePaths } from "../../../../model/module_paths";
import { originOf } from "../../../../model/words/origin";
import { Tree } from "../../../../model/tree";
import { ExportMenu } from "../../../../widgets/export/export_menu";
import type { ExportSource } from "../../../../widgets/export/source";
import { tableOf } from "../../../../widgets/row_table/columns";
import { RowTable } from "../../../../widgets/row_table/row_table";
import { useTree } from "../../../../widgets/row_table/use_sort";
import { Nothing } from "../../../../widgets/state/state";
import { BACKWARD_WORDS } from "../../../time/profiled/module_backward";
import { SearchBox } from "../../../shared/controls/search_box";
import { TraceFrame, useProfiled } from "../../../time/profiled/trace_choice";
import { FIRST_DEPTH, type ModulesPage } from "../params";
import { DepthSelect } from "../controls";
import { TimeFlame } from "./flame";
import { MOST_TIME, timeColumns } from "./columns";

const TABLE_PX = 640;

export function ModuleTimes(page: ModulesPage) {
  const { client, run, ranks, pollMs } = page.view;
  const { source } = page.state;
  const query = { run: run.id, rank: ranks.rank, source };
  const live = useProfiled(client, "module_times", query, pollMs);
  return (
    <TraceFrame live={live} what="times of modules" view={page.view}>
      {(data) => (data.hasModules ? <Times {...page} data={data} /> : <NoModules />)}
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

function Times(props: ModulesPage & { readonly data: ModuleTimesResponse }) {
  const { data, view, state, setState } = props;
  const { theme, commands } = view;
  const { find } = state;
  const depth = state.depth ?? FIRST_DEPTH;
  const [selected, setSelected] = useState<number | null>(null);
  const tree = useMemo(() => new Tree(data.parent), [data.parent]);
  const paths = useMemo(() => modulePaths(data.name, data.parent), [data]);
  const columns = useMemo(() => timeColumns(data, paths, theme), [data, paths, theme]);
  const table = useTree({
    ...{ columns, tree, names: paths, find, depth, selected },
    usual: MOST_TIME,
    word: state.timeSort,
    setWord: (timeSort) => setState({ timeSort }),
  });
  const source: ExportSource = {
    origin: originOf(data.run),
    name: "time of modules",
    table: () => tableOf(columns, [...paths.keys()]),
    about: () => ({ source: data.choice.source }),
  };
  const num = paths.length;
  const backward = BACKWARD_WORDS[data.backward];
  return (
    <section class="modules" aria-label="Time by module">
      <div class="row">
        <SearchBox
          label="Search modules"
          text={find}
          onText={(typed) => setState({ find: typed })}
          commands={commands}
        />
        <DepthSelect
          maxDepth={tree.maxDepth}
          chosen={depth}
          onChange={(chosen) => setState({ depth: chosen })}
        />
        <span class="quiet" role="status">
          {formatInteger(num)} {num === 1 ? "module" : "modules"}
          {num < data.numModules && ` of ${formatInteger(data.numModules)}`}
          {backward !== "" && `. ${backward}`}
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
