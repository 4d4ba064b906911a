/** What calls an operator and what it calls, as nested boxes. Pure. */

import type { OperatorStack } from "../../../../api/types.gen";
import { parseFrame } from "../../../../base/source_link";
import { baseName } from "../../../../model/stacks/call_stacks";
import { buildFlame, flameBoxes } from "../../../../model/stacks/flame_tree";

export const WEIGHTS = ["host", "device", "calls"] as const;
export type Weight = (typeof WEIGHTS)[number];

function weightOf(stack: OperatorStack, weight: Weight): number {
  if (weight === "calls") return stack.numCalls;
  return weight === "host" ? stack.hostMs : stack.deviceMs;
}

/** Shares are of the whole width; rows count from the box that all others lie in. */
interface CallerBox {
  readonly frame: string;
  readonly label: string;
  readonly x: number;
  readonly width: number;
  readonly row: number;
  /** In the weight's unit. */
  readonly value: number;
}

const LEAST_SHARE = 0.002;

/** `forward  model.py:12`; what is no place, as it stands. */
export function frameLabel(frame: string): string {
  const place = parseFrame(frame);
  if (place === null) return frame;
  return `${place.name}  ${baseName(place.filename)}:${place.line}`;
}

const MODULE = "nn.Module: ";
const LIBRARY =
  /(?:^|[\\/])(?:torch|site-packages|dist-packages|lib[\\/]python[\d.]+)[\\/]/;

/** What tells a stack from others in one line: its module, and where the user's code is. */
export function stackLabel(frames: readonly string[]): string {
  const own = frames.find((frame) => {
    const place = parseFrame(frame);
    return place !== null && !LIBRARY.test(place.filename);
  });
  const words = [
    frames.find((frame) => frame.startsWith(MODULE))?.slice(MODULE.length),
  ];
  const place = own ?? (words[0] === undefined ? frames[0] : undefined);
  if (place !== undefined) words.push(frameLabel(place));
  return words.filter((word) => word !== undefined).join(" · ") || "no Python frame";
}

/** Boxes on one side of an operator; row 0 is what lies nearest to the figure's start. */
export interface Side {
  readonly boxes: readonly CallerBox[];
  readonly weight: Weight;
  /** What shares are of. */
  readonly whole: number;
}

/**
 * Callers above what they call, from the outermost. As a sandwich, callers from the
 * nearest, and below the operator what it calls: widths of both are of all its calls, and
 * what no stack is known of stays empty, as what it took itself. Calls within calls do not
 * add up to those around them: callees then are as wide as their time on the host.
 */
export function callersOf(
  stacks: readonly OperatorStack[],
  callees: readonly OperatorStack[],
  weight: Weight,
  isSandwich: boolean,
): { readonly callers: Side; readonly below: Side | null } {
  const weights = stacks.map((stack) => weightOf(stack, weight));
  const known = weights.reduce((sum, one) => sum + one, 0);
  const paths = tellingPaths(stacks);
  if (!isSandwich) {
    const callers = { boxes: nested(paths, weights), weight, whole: known };
    return { callers, below: null };
  }
  const calleeWeight = weight === "calls" ? "host" : weight;
  const own = callees.map((one) => weightOf(one, calleeWeight));
  const whole = own.reduce((sum, one) => sum + one, 0);
  const calls = callees.find(({ frames }) => frames.length === 0)?.numCalls ?? 0;
  const all = weight === "calls" ? calls : whole;
  const outwards = paths.map((path) => path.toReversed());
  const boxes = nested([...outwards, []], [...weights, Math.max(0, all - known)]);
  const inwards = callees.map(({ frames }) => frames);
  return {
    callers: { boxes, weight, whole: all },
    below: { boxes: nested(inwards, own), weight: calleeWeight, whole },
  };
}

/** Frames from the outermost, without those that all begin with, but for the last. */
function tellingPaths(
  stacks: readonly OperatorStack[],
): readonly (readonly string[])[] {
  const paths = stacks.map(({ frames }) => frames.toReversed());
  const skipped = Math.max(0, sharedLength(paths) - 1);
  return paths.map((path) => path.slice(skipped));
}

function nested(
  paths: readonly (readonly string[])[],
  weights: readonly number[],
): readonly CallerBox[] {
  const rows = new Map<string, number>();
  const numbered = paths.map((path) =>
    path.map((frame) => {
      const row = rows.get(frame) ?? rows.size;
      rows.set(frame, row);
      return row;
    }),
  );
  const frames = [...rows.keys()];
  const tree = buildFlame(numbered, weights);
  const values = tree.sums(weights);
  const boxes = flameBoxes(tree, values, 0, LEAST_SHARE);
  return Array.from(boxes.node, (node, i): CallerBox => {
    const frame = frames[tree.frame[node] ?? -1] ?? "";
    return {
      frame,
      label: frameLabel(frame),
      x: boxes.x[i] ?? 0,
      width: boxes.width[i] ?? 0,
      row: (boxes.row[i] ?? 0) - 1,
      value: values[node] ?? 0,
    };
  }).filter(({ row }) => row >= 0);
}

function sharedLength(paths: readonly (readonly string[])[]): number {
  const [first = []] = paths;
  const end = first.findIndex((one, at) => paths.some((path) => path[at] !== one));
  return end < 0 ? first.length : end;
}
