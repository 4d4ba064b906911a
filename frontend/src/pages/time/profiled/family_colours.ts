import type { TraceFamily } from "../../../api/types.gen";
import type { Theme } from "../../../base/tokens";
import { partColour } from "../../../render/palette";

/**
 * Parts of a step have their colour on Steps. The others were found by search: the
 * smallest OKLab distance of any two, over normal sight and three simulated colour
 * blindnesses, is 10.6 in light and 9.0 in dark. Parents of other work are pale and
 * left out of that, as are `fill` and `hidden`, which no trace draws.
 */
const OWN: Readonly<Record<Theme, Readonly<Record<string, string>>>> = {
  light: {
    kernel: "#2a612f",
    operator: "#bcf0b0",
    memory: "#ecdb2f",
    fill: "#c8a8e8",
    hidden: "#c8a8e8",
    annotation: "#d8cfc4",
    runtime: "#24292a",
    python: "#c9ced6",
    step: "#e4e7eb",
  },
  dark: {
    kernel: "#2a8a40",
    operator: "#bdfdca",
    memory: "#effd4b",
    fill: "#e4b4fc",
    hidden: "#e4b4fc",
    annotation: "#8b8478",
    runtime: "#494e55",
    python: "#b9bec6",
    step: "#5b6068",
  },
};

/**
 * A trace's families; `fill` where it is distinguished from copies; `hidden`:
 * communication during computation. No page shows both.
 */
export type WorkKind = TraceFamily | "fill" | "hidden";

export function familyColour(theme: Theme, family: WorkKind): string {
  return OWN[theme][family] ?? partColour(theme, family);
}
