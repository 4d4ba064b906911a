import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import type { OperatorResponse } from "../../../../api/types.gen";
import { useWidgetTexts } from "../../../../base/widget_words";
import { formatQuantity } from "../../../../model/words/quantity";
import { partColour } from "../../../../render/palette";
import { Flame } from "../../../../widgets/flame/flame";
import { ROW_PX, type FlameData } from "../../../../widgets/flame/layout";
import { Segmented } from "../../../shared/controls/choices";
import { switched, usePageState } from "../../../shared/page_state";
import type { ViewProps } from "../../../shared/view_props";
import { callersOf, type Side, type Weight } from "./callers";

const MOST_PX = 180;

const WEIGHT_WORDS: Readonly<Record<Weight, readonly [string, string]>> = {
  host: ["Host time", "Boxes are as wide as the time on the host"],
  device: ["Device time", "Boxes are as wide as the time of the kernels"],
  calls: ["Calls", "Boxes are as wide as there are calls"],
};

const CALLERS = { boxes: switched("boxes", WEIGHT_WORDS, "host") };

const FIGURE_WORDS = {
  flame: ["Flame", "Callers from the outermost, above what they call"],
  sandwich: ["Sandwich", "Callers above the operator, callees below it"],
} as const;

export function Callers(props: {
  readonly data: OperatorResponse;
  readonly view: ViewProps;
  readonly hasStacks: boolean;
  readonly hasDevices: boolean;
}) {
  const { data, view, hasStacks, hasDevices } = props;
  const { stacks, callees } = data;
  const [{ boxes: wanted }, set] = usePageState(view, CALLERS);
  const weight = wanted === "device" && !hasDevices ? "host" : wanted;
  const isSandwich = !hasStacks || view.params.get("figure") === "sandwich";
  const title = isSandwich ? "Callers and callees" : "Callers";
  const { callers, below } = useMemo(
    () => callersOf(stacks, callees, weight, isSandwich),
    [stacks, callees, weight, isSandwich],
  );
  const nothing = `took ${WEIGHT_WORDS[weight][0].toLowerCase()}.`;
  return (
    <section aria-label={title}>
      <div class="panel-head">
        <h2>{title}</h2>
        <Segmented
          label="Flame or sandwich"
          chosen={isSandwich ? "sandwich" : "flame"}
          labels={FIGURE_WORDS}
          disabled={(option) => option === "flame" && !hasStacks}
          onChoose={(option) =>
            view.setParams({ figure: option === "flame" ? null : option })
          }
        />
        <Segmented
          label="Box width"
          chosen={weight}
          labels={WEIGHT_WORDS}
          disabled={(option) => option === "device" && !hasDevices}
          onChoose={(boxes) => set({ boxes })}
        />
      </div>
      {hasStacks && (
        <Boxes
          label="Callers"
          side={callers}
          view={view}
          upwards={isSandwich}
          empty={isSandwich ? "It has no Python callers." : `No caller ${nothing}`}
        />
      )}
      {below !== null && (
        <>
          <p>
            <span class="quiet">callers above, callees below of</span>{" "}
            <b>{data.name}</b>{" "}
            {formatQuantity(below.data.values[0] ?? 0, below.data.unit ?? "seconds")}
            {below.weight !== weight && (
              <span class="quiet">, callees as wide as their time on the host</span>
            )}
          </p>
          <Boxes
            label="Callees"
            side={below}
            view={view}
            empty={
              callees.length > 1 ? `No callee ${nothing}` : "It calls no operators."
            }
          />
        </>
      )}
    </section>
  );
}

function Boxes(props: {
  readonly label: string;
  readonly side: Side;
  readonly view: ViewProps;
  readonly upwards?: boolean;
  readonly empty: string;
}) {
  const { label, side, view, upwards = false } = props;
  const { data, names, weight } = side;
  const { theme, byteUnit } = view;
  const [zoom, setZoom] = useWidgetTexts("zoom", label);
  const path = useMemo(() => zoom.map(Number), [zoom.join()]);
  const lastData = useRef(data);
  const source = useSignal<FlameData | null>(null);
  useEffect(() => {
    const colour =
      weight === "device" ? partColour(theme, "kernel") : partColour(theme, "forward");
    source.value = { ...data, palette: [colour] };
    if (lastData.current !== data) setZoom([]);
    lastData.current = data;
  }, [data, theme]);
  const { maxDepth } = data.tree;
  if (maxDepth === 0 || !((data.values[1] ?? 0) > 0))
    return <p class="quiet">{props.empty}</p>;
  return (
    <Flame
      label={label}
      theme={theme}
      byteUnit={byteUnit}
      zoom={path}
      upwards={upwards}
      data={source}
      stacks={names}
      hideRoot
      frameMatches={null}
      onZoom={(frames) => setZoom(frames.map(String))}
      heightPx={Math.min(MOST_PX, maxDepth * ROW_PX)}
    />
  );
}
