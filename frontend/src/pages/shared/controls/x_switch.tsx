import type { XKind } from "../../../api/types.gen";
import { switched } from "../page_state";
import type { ViewProps } from "../view_props";
import { Choice, Switch } from "./choices";

export const X_WORD = switched<XKind>(
  "x",
  { step: ["Step", ""], relative: ["Relative", ""], wall: ["Wall time", ""] },
  "step",
);
// A range of steps means nothing in time.
const NO_RANGE = { x0: null, x1: null };

export function XSwitch({ view }: { readonly view: ViewProps }) {
  return <Switch view={view} of={X_WORD} label="Horizontal axis" leaves={NO_RANGE} />;
}

/** `phase` "": the first, which stays out of the URL. */
export function PhaseChoice(props: {
  readonly view: ViewProps;
  readonly phase: string;
  readonly phases: readonly string[];
}) {
  const { phase, phases, view } = props;
  const [first = ""] = phases;
  if (phases.length < 2) return null;
  return (
    <Choice
      label="Phase"
      value={phase === "" ? first : phase}
      of={phases}
      onChange={(option) =>
        view.setParams({ phase: option === first ? null : option }, "push")
      }
    />
  );
}
