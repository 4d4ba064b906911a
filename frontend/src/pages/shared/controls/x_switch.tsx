import type { XKind } from "../../../api/types.gen";
import { X_KINDS, X_WORDS } from "../../../model/lines/axis";
import type { ViewProps } from "../view_props";
import { Choice, Segmented } from "./choices";

type Set = Pick<ViewProps, "setParams">;

export function XSwitch({ x, setParams }: Set & { readonly x: XKind }) {
  return (
    <Segmented
      label="Horizontal axis"
      options={X_KINDS}
      chosen={x}
      words={(kind) => [X_WORDS[kind], ""]}
      // A range of steps means nothing in time.
      onChoose={(kind) => setParams({ x: kind, x0: null, x1: null }, "push")}
    />
  );
}

/** `phase` "": the first, which stays out of the URL. */
export function PhaseChoice(
  props: Set & { readonly phase: string; readonly phases: readonly string[] },
) {
  const { phase, phases, setParams } = props;
  const [first = ""] = phases;
  if (phases.length < 2) return null;
  return (
    <Choice
      label="Phase"
      value={phase === "" ? first : phase}
      of={phases.map((one) => [one, one])}
      onChange={(one) => setParams({ phase: one === first ? null : one }, "push")}
    />
  );
}
