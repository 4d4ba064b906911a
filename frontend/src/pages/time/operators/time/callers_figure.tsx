/** What calls an operator as a flame graph, or that and what it calls as a sandwich. */

import { useMemo, useState } from "preact/hooks";
import type { OperatorResponse } from "../../../../api/types.gen";
import { formatInteger, formatShare } from "../../../../base/bytes";
import { formatSeconds } from "../../../../base/durations";
import { familyColour } from "../../profiled/family_colours";
import { partColour } from "../../../../render/palette";
import { Segmented } from "../../../shared/controls/choices";
import type { ViewProps } from "../../../shared/view_props";
import {
  callerBoxes,
  sandwich,
  WEIGHTS,
  weightOf,
  type CallerBox,
  type Weight,
} from "./callers";

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

interface CallersProps {
  readonly data: OperatorResponse;
  readonly view: ViewProps;
  readonly hasStacks: boolean;
  readonly hasDevices: boolean;
}

export function Callers(props: CallersProps) {
  const { data, view, hasStacks, hasDevices } = props;
  const [wanted, setWeight] = useState<Weight>("host");
  const weight = wanted === "device" && !hasDevices ? "host" : wanted;
  const isSandwich = !hasStacks || view.params.get("figure") === "sandwich";
  return (
    <section aria-label={isSandwich ? "Callers and callees" : "Callers"}>
      <div class="panel-head">
        <h2>{isSandwich ? "Callers and callees" : "Callers"}</h2>
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
      {isSandwich ? (
        <BothSides data={data} weight={weight} view={view} hasStacks={hasStacks} />
      ) : (
        <CallersAlone data={data} weight={weight} view={view} />
      )}
    </section>
  );
}

interface FigureProps {
  readonly data: OperatorResponse;
  readonly weight: Weight;
  readonly view: ViewProps;
}

/** Callers above what they call; the width is their share. */
function CallersAlone({ data: { stacks }, weight, view }: FigureProps) {
  const boxes = useMemo(() => callerBoxes(stacks, weight), [stacks, weight]);
  const whole = stacks.reduce((sum, stack) => sum + weightOf(stack, weight), 0);
  if (boxes.length === 0) {
    return (
      <p class="quiet">Nothing of it took {WEIGHT_WORDS[weight][0].toLowerCase()}.</p>
    );
  }
  return <Boxes boxes={boxes} weight={weight} whole={whole} view={view} />;
}

function BothSides(props: FigureProps & { readonly hasStacks: boolean }) {
  const { data, weight, view } = props;
  const { stacks, callees } = data;
  const sides = useMemo(
    () => sandwich(stacks, callees, weight),
    [stacks, callees, weight],
  );
  const calls = callees[0]?.numCalls ?? 0;
  return (
    <>
      {sides.callers.length > 0 ? (
        <Boxes
          upwards
          boxes={sides.callers}
          weight={weight}
          whole={weight === "calls" ? calls : sides.whole}
          view={view}
        />
      ) : (
        <p class="quiet">
          {props.hasStacks ? "No Python frame lies around it." : "Callers: no stacks."}
        </p>
      )}
      <p>
        <span class="quiet">callers above, callees below of</span> <b>{data.name}</b>{" "}
        {words(sides.whole, sides.calleeWeight)}
        {sides.calleeWeight !== weight && (
          <span class="quiet">, callees as wide as their time on the host</span>
        )}
      </p>
      {sides.callees.length > 0 ? (
        <Boxes
          boxes={sides.callees}
          weight={sides.calleeWeight}
          whole={sides.whole}
          view={view}
        />
      ) : (
        <p class="quiet">
          {callees.length > 1
            ? `Nothing that it calls took ${WEIGHT_WORDS[weight][0].toLowerCase()}.`
            : "It calls no operators."}
        </p>
      )}
    </>
  );
}

function words(value: number, weight: Weight): string {
  return weight === "calls" ? formatInteger(value) : formatSeconds(value / 1e3);
}

function Boxes(props: {
  readonly boxes: readonly CallerBox[];
  readonly weight: Weight;
  readonly whole: number;
  readonly view: ViewProps;
  readonly upwards?: boolean;
}) {
  const { boxes, weight, whole, view, upwards } = props;
  const numRows = boxes.reduce((most, { row }) => Math.max(most, row + 1), 0);
  const { theme } = view;
  const colour =
    weight === "device" ? familyColour(theme, "kernel") : partColour(theme, "forward");
  return (
    <div
      class={upwards === true ? "operator-callers is-upwards" : "operator-callers"}
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
              top: `${(upwards === true ? numRows - 1 - box.row : box.row) * BOX_PX}px`,
              height: `${BOX_PX - 1}px`,
              borderColor: colour,
            }}
          >
            {box.label}
          </span>
        ))}
      </div>
    </div>
  );
}
