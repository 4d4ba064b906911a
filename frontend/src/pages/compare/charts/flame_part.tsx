import { computed, signal } from "@preact/signals";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { counted } from "../../../base/bytes";
import { divergingColours } from "../../../model/category";
import { buildFlame } from "../../../model/stacks/flame_tree";
import { figureTitle, originOf } from "../../../model/words/origin";
import { ExportMenu } from "../../../widgets/export/export_menu";
import type { ExportSource } from "../../../widgets/export/source";
import { flameFigure, flameTable } from "../../../widgets/flame/paint";
import { Flame } from "../../../widgets/flame/flame";
import type { FlameData } from "../../../widgets/flame/layout";
import { useWidth } from "../../../widgets/plot/canvas";
import { Legend } from "../../../widgets/plot/legend";
import { Switch, TextButton } from "../../shared/controls/choices";
import { COMPARE } from "../params";
import type { DifferenceProps } from "../params";
import { about, comparedStacks } from "../rows";

const FLAME_PX = 300;
const FLAME_ROW_PX = 18;
const NO_STACKS = { frame: null, zoom: [] as readonly number[] };

export function ChangeFlame({ view, params, answer }: DifferenceProps) {
  const { theme, byteUnit, setParams } = view;
  const [less, more] = divergingColours(theme);
  const [state, setState] = useState(NO_STACKS);
  const stacks = useMemo(() => comparedStacks(answer.stacks), [answer]);
  const source = useMemo(() => signal<FlameData | null>(null), []);
  const data = useMemo<FlameData>(() => {
    const { aBytes, bBytes } = answer.stacks;
    const larger = Float64Array.from(aBytes, (a, i) => Math.max(a, bBytes[i] ?? 0));
    const paths = Array.from(aBytes, (_, stack) => stacks.path(stack, params.frames));
    const tree = buildFlame(paths, larger);
    return {
      tree,
      values: tree.sums(larger),
      colour: new Uint8Array(tree.numNodes),
      palette: ["#888888"],
      change: {
        before: tree.sums(aBytes),
        after: tree.sums(bBytes),
        names: ["in A", "in B"],
      },
      title: "B against A",
    };
  }, [answer, stacks, params.frames]);
  useEffect(() => {
    source.value = data;
    setState(NO_STACKS);
  }, [data]);
  const read = useMemo(() => computed(() => source.value), [source]);
  const left = answer.stacks.numStacks - answer.stacks.aBytes.length;
  const box = useRef<HTMLElement>(null);
  const widthPx = useWidth(box);
  const origin = originOf(view.run);
  const file: ExportSource = {
    origin,
    name: "difference by stack",
    table: () => flameTable(data, stacks),
    about: () => ({
      match: params.match,
      frames: params.frames,
      a: about(answer.a),
      b: about(answer.b),
    }),
    figure: () =>
      flameFigure({
        data,
        stacks,
        zoom: state.zoom,
        title: figureTitle("Difference by stack, B against A", origin),
        key: [
          [less, "less in B"],
          [more, "more in B"],
        ],
        theme,
        byteUnit,
        widthPx,
      }),
  };
  return (
    <section ref={box} aria-label="Difference by stack">
      <div class="panel-head">
        <h2>Difference by stack</h2>
        <Switch view={view} of={COMPARE.frames} label="Frames shown" />
        <Switch view={view} of={COMPARE.match} label="Match by" title="Match by" />
        {state.zoom.length > 0 && (
          <TextButton press={() => setState(NO_STACKS)}>Show all</TextButton>
        )}
        <Legend
          items={[
            { label: "less in B", colour: less },
            { label: "more in B", colour: more },
          ]}
        />
        <span class="quiet">as wide as the larger of the two</span>
        <ExportMenu subject="the flamegraph" source={file} />
      </div>
      <Flame
        label="Flamegraph of the difference between A and B"
        data={read}
        stacks={stacks}
        frameMatches={null}
        zoom={state.zoom}
        onZoom={(zoom) => setState({ ...state, zoom })}
        onFrame={(frame) => {
          const { name } = stacks.frame(frame);
          setParams({ by: "stack", find: name });
        }}
        theme={theme}
        byteUnit={byteUnit}
        heightPx={Math.min(FLAME_PX, FLAME_ROW_PX * (data.tree.maxDepth + 2))}
      />
      {left > 0 && (
        <p class="quiet">Not among them: {counted(left, "stack")} that differ least.</p>
      )}
    </section>
  );
}
