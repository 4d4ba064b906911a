import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useState } from "preact/hooks";
import type { ModuleTimesResponse, TableColumn } from "../../../../api/types.gen";
import type { Tree } from "../../../../model/tree";
import { nestedFlame } from "../../../../model/stacks/flame_tree";
import { partColour } from "../../../../render/palette";
import { Flame } from "../../../../widgets/flame/flame";
import type { FlameData, FrameNames } from "../../../../widgets/flame/types";
import { Segmented, TextButton } from "../../../shared/controls/choices";
import type { ViewProps } from "../../../shared/view_props";

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
  { numbers: ms, sum }: TableColumn,
  colour: string,
): FlameData {
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
  readonly paths: readonly string[];
  readonly view: ViewProps;
  readonly selected: number | null;
  readonly onSelect: (id: number | null) => void;
}) {
  const { data, tree, paths, view, selected, onSelect } = props;
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
      frameLabel: (id) => paths[id] ?? "",
      boxLabel: (id) => data.name[id] ?? "",
    }),
    [data, paths],
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
          words={Object.fromEntries(
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
          found={null}
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
