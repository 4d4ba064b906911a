import type { OperatorStack } from "../../../../api/types.gen";
import { parseFrame } from "../../../../model/stacks/source_link";
import { baseName } from "../../../../model/stacks/call_stacks";
import { buildFlame } from "../../../../model/stacks/flame_tree";
import type { FlameData, FrameNames } from "../../../../widgets/flame/layout";

export type Weight = "host" | "device" | "calls";

function weightOf(stack: OperatorStack, weight: Weight): number {
  if (weight === "calls") return stack.numCalls;
  return (weight === "host" ? stack.hostMs : stack.deviceMs) / 1e3;
}

/** `forward model.py:12`; other text is unchanged. */
export function frameLabel(frame: string): string {
  const place = parseFrame(frame);
  if (place === null) return frame;
  return `${place.name}  ${baseName(place.filename)}:${place.line}`;
}

/** Row 1 is nearest to the figure's start. */
export interface Side {
  readonly data: FlameData;
  readonly names: FrameNames;
  readonly weight: Weight;
}

/**
 * Callers above callees, outermost first; as a sandwich, callers nearest first with
 * callees below. Widths are of all calls, so self time and time of unknown stacks stay
 * empty. Nested calls do not add up to the outer ones: callees then have the width of
 * their host time.
 */
export function callersOf(
  stacks: readonly OperatorStack[],
  callees: readonly OperatorStack[],
  weight: Weight,
  isSandwich: boolean,
): { readonly callers: Side; readonly below: Side | null } {
  const weights = stacks.map((stack) => weightOf(stack, weight));
  const paths = tellingPaths(stacks);
  if (!isSandwich) return { callers: sideOf(paths, weights, weight), below: null };
  const calleeWeight = weight === "calls" ? "host" : weight;
  const own = callees.map((callee) => weightOf(callee, calleeWeight));
  const stackSum = sumOf(weights);
  const calls = callees.find(({ frames }) => frames.length === 0)?.numCalls ?? 0;
  const all = weight === "calls" ? calls : sumOf(own);
  const outwards = [...paths.map((path) => path.toReversed()), []];
  const inwards = callees.map(({ frames }) => frames);
  return {
    callers: sideOf(outwards, [...weights, Math.max(0, all - stackSum)], weight),
    below: sideOf(inwards, own, calleeWeight),
  };
}

function sumOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0);
}

/** From the outermost, without the common start, but always with the last. */
function tellingPaths(
  stacks: readonly OperatorStack[],
): readonly (readonly string[])[] {
  const paths = stacks.map(({ frames }) => frames.toReversed());
  const [first = []] = paths;
  const apart = first.findIndex((frame, index) =>
    paths.some((path) => path[index] !== frame),
  );
  const shared = apart < 0 ? first.length : apart;
  return paths.map((path) => path.slice(Math.max(0, shared - 1)));
}

function sideOf(
  paths: readonly (readonly string[])[],
  weights: readonly number[],
  weight: Weight,
): Side {
  const frames = [...new Set(paths.flat())];
  const rows = new Map(frames.map((frame, row) => [frame, row]));
  const tree = buildFlame(
    paths.map((path) => path.map((frame) => rows.get(frame) ?? 0)),
    weights,
  );
  return {
    weight,
    data: {
      tree,
      values: tree.sums(weights),
      palette: [],
      change: null,
      title: "",
      unit: weight === "calls" ? "count" : "seconds",
      colour: new Uint8Array(tree.numNodes),
    },
    names: {
      frame: () => ({ name: "", filename: "", line: 0, kind: 0 }),
      frameLabel: (row) => frames[row] ?? "",
      boxLabel: (row) => frameLabel(frames[row] ?? ""),
    },
  };
}
