import { useSignal } from "@preact/signals";
import { useMemo, useState, useEffect } from "preact/hooks";
import type { ModuleTimesResponse, TableColumn } from "../../../../api/types.gen";
import { useLive } from "../../../../api/live/use_live";
import { counted, formatInteger } from "../../../../base/bytes";
import { nestedFlame } from "../../../../model/stacks/flame_tree";
import { Tree } from "../../../../model/tree";
import { partColour } from "../../../../render/palette";
import { Flame } from "../../../../widgets/flame/flame";
import type { FlameData, FrameNames } from "../../../../widgets/flame/layout";
import type { RowColumn } from "../../../../widgets/row_table/columns";
import { Nothing } from "../../../../widgets/state/state";
import { DepthSelect, Segmented, TextButton } from "../../../shared/controls/choices";
import { SearchBox } from "../../../shared/controls/search_box";
import type { ViewProps } from "../../../shared/view_props";
import { TreeTable } from "../../../shared/table/answer_table";
import { TraceFrame } from "../../../time/profiled/trace_choice";
import { FIRST_DEPTH, type ModulesPage } from "../params";

const TABLE_PX = 640;

export function ModuleTimes(page: ModulesPage) {
  const { client, run, ranks, pollMs } = page.view;
  const { source } = page.state;
  const query = { run: run.id, rank: ranks.rank, source };
  const live = useLive(client, "module_times", query, pollMs);
  return (
    <TraceFrame live={live} contents="times of modules" view={page.view}>
      {(data) =>
        data.table.numRows > 0 ? <Times {...page} data={data} /> : <NoModules />
      }
    </TraceFrame>
  );
}

/** All columns of a trace with devices fit a screen of 1280 px. */
const MODULE_PX = 208;

/** The model's tree; all other columns are of the answer. */
export function moduleColumn({ name, path }: ModuleTimesResponse): RowColumn {
  return {
    key: "module",
    title: "Module",
    numeric: false,
    isTree: true,
    width: `minmax(${MODULE_PX}px, 3fr)`,
    values: name,
    exported: { name: "module", values: path },
    cell: (id) => ({ text: name[id] ?? "", title: path[id] ?? "" }),
  };
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
  const before = useMemo(() => [moduleColumn(data)], [data]);
  const table = useMemo(
    () => ({ ...data.table, title: "Time by module" }),
    [data.table],
  );
  const { numRows: num, numAll } = data.table;
  return (
    <div class="column">
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
          {num < numAll && `${formatInteger(num)} of `}
          {counted(numAll, "row")}
          {data.backward !== "" && `. ${data.backward}`}
        </span>
      </div>
      <TreeTable
        view={view}
        table={table}
        empty="No module matches."
        before={before}
        word="time_sort"
        tree={tree}
        names={data.path}
        find={find}
        depth={depth}
        selected={selected}
        onSelect={setSelected}
        shell={view}
        about={{ source: data.choice.source }}
        heightPx={TABLE_PX}
      />
      <TimeFlame
        data={data}
        tree={tree}
        view={view}
        selected={selected}
        onSelect={setSelected}
      />
    </div>
  );
}

const MOST_PX = 360;
const ROW_PX = 18;

export function flameTimes({ table }: ModuleTimesResponse): readonly TableColumn[] {
  const times = table.columns.filter(
    ({ bar, key }) => bar !== "" && !key.endsWith("_self_ms"),
  );
  const isDevice = ({ key }: TableColumn): number => +key.includes("device");
  return times.toSorted((a, b) => isDevice(b) - isDevice(a));
}

export function flameOf(
  { parent }: Pick<ModuleTimesResponse, "parent">,
  { numbers, sum }: TableColumn,
  colour: string,
): FlameData {
  // Device work in no module has no time of the host: no box there.
  const ms = numbers.map((value) => (Number.isNaN(value) ? 0 : value));
  const tree = nestedFlame(parent, ms);
  return {
    tree,
    values: Float64Array.from(tree.frame, (id) => (ms[id] ?? sum ?? 0) / 1e3),
    unit: "seconds",
    colour: new Uint8Array(tree.numNodes),
    palette: [colour],
    change: null,
    title: "All modules",
  };
}

export function TimeFlame(props: {
  readonly data: ModuleTimesResponse;
  readonly tree: Tree;
  readonly view: ViewProps;
  readonly selected: number | null;
  readonly onSelect: (id: number | null) => void;
}) {
  const { data, tree, view, selected, onSelect } = props;
  const { theme, byteUnit } = view;
  const [wanted, setWanted] = useState("");
  const times = flameTimes(data);
  const time = times.find(({ key }) => key === wanted) ?? times[0];
  const source = useSignal<FlameData | null>(null);
  useEffect(() => {
    source.value = time ? flameOf(data, time, partColour(theme, time.bar)) : null;
  }, [data, time?.key, theme]);
  const names = useMemo<FrameNames>(
    () => ({
      frame: () => ({ name: "", filename: "", line: 0, kind: 0 }),
      frameLabel: (id) => data.path[id] ?? "",
      boxLabel: (id) => data.name[id] ?? "",
    }),
    [data],
  );
  const zoom = useMemo(
    () => (selected === null ? [] : [...tree.ancestors(selected), selected]),
    [tree, selected],
  );
  if (time === undefined) return null;
  return (
    <section aria-label="Flame graph of modules">
      <div class="panel-head">
        <h2>Flame graph</h2>
        <Segmented
          label="Box width"
          chosen={time.key}
          labels={Object.fromEntries(
            times.map(({ key, title, help }) => [
              key,
              [title.replace("\n", " ").replace(" total", ""), help],
            ]),
          )}
          onChoose={setWanted}
        />
        {selected !== null && (
          <TextButton press={() => onSelect(null)}>All modules</TextButton>
        )}
      </div>
      {(time.sum ?? 0) > 0 ? (
        <Flame
          label="Flame graph of modules"
          data={source}
          stacks={names}
          frameMatches={null}
          zoom={zoom}
          onZoom={(path) => onSelect(path.at(-1) ?? null)}
          theme={theme}
          byteUnit={byteUnit}
          heightPx={Math.min(MOST_PX, ROW_PX * (tree.maxDepth + 2))}
        />
      ) : (
        <p class="quiet">No module took any time of this kind.</p>
      )}
    </section>
  );
}
