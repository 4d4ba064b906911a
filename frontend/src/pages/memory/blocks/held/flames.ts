/** A tree is built once per set of stacks: a pointer move only sums bytes again. */

import {
  OTHER_STACKS,
  type CallStacks,
  type FrameChoice,
} from "../../../../model/stacks/call_stacks";
import {
  buildFlame,
  sandwich,
  type FlameTree,
} from "../../../../model/stacks/flame_tree";
import { atMoment, momentText } from "../../../../widgets/block_stack/axis";
import { nodeColours, type FlameData } from "../../../../widgets/flame/layout";
import type { LiveStacks, HeldColours } from "./held";

interface Grown {
  readonly tree: FlameTree;
  readonly colour: Uint8Array;
  /** The slots of a `Held`, or stacks. */
  readonly slots: Int32Array;
}

export class Flames {
  readonly #grown = new WeakMap<Int32Array, Map<string, Grown>>();
  readonly #paths = new WeakMap<Int32Array, readonly Int32Array[]>();

  constructor(
    private readonly stacks: CallStacks,
    private readonly choice: FrameChoice,
    private readonly colours: HeldColours,
  ) {}

  paths({ stack }: Pick<LiveStacks, "stack">): readonly Int32Array[] {
    const paths =
      this.#paths.get(stack) ??
      Array.from(stack, (id) => this.stacks.path(id, this.choice));
    this.#paths.set(stack, paths);
    return paths;
  }

  tree(live: LiveStacks, title = `live ${atMoment(live.moment)}`): FlameData {
    const grown = this.#once(live, "all", () =>
      this.#coloured(live, buildFlame(this.paths(live), weightsOf(live))),
    );
    return this.#data(grown, live, title);
  }

  side(live: LiveStacks, frame: number, which: "callers" | "callees"): FlameData {
    const grown = this.#once(live, `${which} ${frame}`, () => {
      const sides = sandwich(this.paths(live), weightsOf(live), frame);
      return this.#coloured(live, sides[which], sides.slots);
    });
    return this.#data(grown, live, which);
  }

  difference(before: LiveStacks, after: LiveStacks): FlameData {
    const earlier = besides(before, after);
    const key = `against ${before.moment} ${before.stack.length}`;
    const { tree, colour, slots } = this.#once(after, key, () => {
      const stack = Int32Array.from(earlier.keys());
      const bytes = [...earlier.values()];
      const larger = bytes.map((own, slot) =>
        Math.max(own, after.stackBytes[slot] ?? 0),
      );
      const grown = buildFlame(this.paths({ stack }), larger);
      return { tree: grown, colour: new Uint8Array(grown.numNodes), slots: stack };
    });
    const a = Float64Array.from(slots, (stack) => earlier.get(stack) ?? 0);
    const b = Float64Array.from(slots, (_, slot) => after.stackBytes[slot] ?? 0);
    return {
      tree,
      colour,
      palette: this.colours.palette,
      values: tree.sums(a.map((bytes, slot) => Math.max(bytes, b[slot] ?? 0))),
      change: { before: tree.sums(a), after: tree.sums(b) },
      title: `${momentText(after.moment)} against ${momentText(before.moment)}`,
    };
  }

  #once({ stack }: LiveStacks, key: string, grow: () => Grown): Grown {
    const grownByKey = this.#grown.get(stack) ?? new Map<string, Grown>();
    this.#grown.set(stack, grownByKey);
    const grown = grownByKey.get(key) ?? grow();
    grownByKey.set(key, grown);
    return grown;
  }

  #coloured(
    live: LiveStacks,
    tree: FlameTree,
    slots: Int32Array = live.stack.map((_, slot) => slot),
  ): Grown {
    const own = this.colours.rows(live);
    const all = weightsOf(live);
    const weights = Float64Array.from(slots, (slot) => all[slot] ?? 0);
    const mixture = this.colours.palette.length - 1;
    const rows = slots.map((slot) => own[slot] ?? mixture);
    return { tree, colour: nodeColours(tree, rows, weights, mixture), slots };
  }

  #data({ tree, colour, slots }: Grown, live: LiveStacks, title: string): FlameData {
    const { palette } = this.colours;
    const bytes = Float64Array.from(slots, (slot) => live.stackBytes[slot] ?? 0);
    return { tree, values: tree.sums(bytes), colour, palette, change: null, title };
  }
}

function weightsOf({ weights, stackBytes }: LiveStacks): Float64Array {
  return weights ?? stackBytes;
}

/**
 * Earlier bytes by stack: first stacks that are live after, in their order, then the
 * others. Where `after` merges its smallest stacks, these are merged too.
 */
function besides(before: LiveStacks, after: LiveStacks): ReadonlyMap<number, number> {
  const bytesByStack = new Map(Array.from(after.stack, (stack) => [stack, 0]));
  const folds = bytesByStack.has(OTHER_STACKS);
  before.stack.forEach((id, i) => {
    const stack = folds && !bytesByStack.has(id) ? OTHER_STACKS : id;
    bytesByStack.set(
      stack,
      (bytesByStack.get(stack) ?? 0) + (before.stackBytes[i] ?? 0),
    );
  });
  return bytesByStack;
}
