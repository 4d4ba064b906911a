/** What calls an operator, from the outermost; or from the nearest, and what it calls. */

import { useMemo, useState } from "preact/hooks";
import type { OperatorResponse } from "../../../../api/types.gen";
import { formatInteger, formatShare } from "../../../../base/bytes";
import { formatSeconds } from "../../../../base/durations";
import type { Theme } from "../../../../base/tokens";
import { familyColour } from "../../profiled/family_colours";
import { partColour } from "../../../../render/palette";
import { Segmented } from "../../../shared/controls/choices";
import type { ViewProps } from "../../../shared/view_props";
import { callersOf, WEIGHTS, type Side, type Weight } from "./callers";

const BOX_PX = 18;

const WEIGHT_WORDS: Readonly<Record<Weight, readonly [string, string]>> = {
  host: ["Host time", "Boxes are as wide as the time on the host"],
  device: ["Device time", "Boxes are as wide as the time of the kernels"],
  calls: ["Calls", "Boxes are as wide as there are calls"],
};

const FIGURES = ["flame", "sandwich"] as const;
type Figure = (typeof FIGURES)[number];

const FIGURE_WORDS: Readonly<Record<Figure, readonly [string, string]>> = {
  flame: ["Flame", "Callers from the outermost, above what they call"],
  sandwich: ["Sandwich", "Callers above the operator, callees below it"],
};

export function Callers(props: {
  readonly data: OperatorResponse;
  readonly view: ViewProps;
  readonly hasStacks: boolean;
  readonly hasDevices: boolean;
}) {
  const { data, view, hasStacks, hasDevices } = props;
  const { stacks, callees } = data;
  const [wanted, setWeight] = useState<Weight>("host");
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
          options={FIGURES}
          chosen={isSandwich ? "sandwich" : "flame"}
          words={(one) => FIGURE_WORDS[one]}
          disabled={(one) => one === "flame" && !hasStacks}
          onChoose={(one) => view.setParams({ figure: one === "flame" ? null : one })}
        />
        <Segmented
          label="What boxes are as wide as"
          options={WEIGHTS}
          chosen={weight}
          words={(one) => WEIGHT_WORDS[one]}
          disabled={(one) => one === "device" && !hasDevices}
          onChoose={setWeight}
        />
      </div>
      {hasStacks && (
        <Boxes
          side={callers}
          theme={view.theme}
          upwards={isSandwich}
          empty={
            isSandwich ? "No Python frame lies around it." : `Nothing of it ${nothing}`
          }
        />
      )}
      {below !== null && (
        <>
          <p>
            <span class="quiet">callers above, callees below of</span>{" "}
            <b>{data.name}</b> {words(below.whole, below.weight)}
            {below.weight !== weight && (
              <span class="quiet">, callees as wide as their time on the host</span>
            )}
          </p>
          <Boxes
            side={below}
            theme={view.theme}
            empty={
              callees.length > 1
                ? `Nothing that it calls ${nothing}`
                : "It calls no operators."
            }
          />
        </>
      )}
    </section>
  );
}

function words(value: number, weight: Weight): string {
  return weight === "calls" ? formatInteger(value) : formatSeconds(value / 1e3);
}

function Boxes(props: {
  readonly side: Side;
  readonly theme: Theme;
  readonly upwards?: boolean;
  /** Stands there without any. */
  readonly empty: string;
}) {
  const { side, theme, upwards = false } = props;
  const { boxes, weight, whole } = side;
  if (boxes.length === 0) return <p class="quiet">{props.empty}</p>;
  const numRows = boxes.reduce((most, { row }) => Math.max(most, row + 1), 0);
  const borderColor =
    weight === "device" ? familyColour(theme, "kernel") : partColour(theme, "forward");
  return (
    <div
      class={upwards ? "operator-callers is-upwards" : "operator-callers"}
      tabIndex={0}
    >
      <div style={{ height: `${numRows * BOX_PX}px` }}>
        {boxes.map((box, i) => (
          <span
            key={i}
            class="cut"
            title={`${box.frame}\n${words(box.value, weight)}, ${formatShare(box.value, whole)}`}
            style={{
              left: `${box.x * 100}%`,
              width: `${box.width * 100}%`,
              top: `${(upwards ? numRows - 1 - box.row : box.row) * BOX_PX}px`,
              height: `${BOX_PX - 1}px`,
              borderColor,
            }}
          >
            {box.label}
          </span>
        ))}
      </div>
    </div>
  );
}
