/** Answers of `/segments` for tests, written as lists of blocks. */

import type { SegmentsResponse } from "../../../../api/types.gen";

/** State (0 free, 1 allocated, 2 pending) and bytes. */
export type TestBlock = readonly [state: 0 | 1 | 2, bytes: number];

export interface TestSegment {
  readonly address: number;
  readonly blocks: readonly TestBlock[];
  /** Set where the answer lists no blocks of it. */
  readonly unlisted?: boolean;
  readonly numAlike?: number;
}

export function segmentsAnswer(of: readonly TestSegment[]): SegmentsResponse {
  const listed = of.map((one) => (one.unlisted === true ? [] : one.blocks));
  const blocks = listed.flat();
  const sum = (one: TestSegment, state: number): number =>
    one.blocks.reduce((bytes, [own, size]) => bytes + (own === state ? size : 0), 0);
  const total = (state: number): number =>
    of.reduce((bytes, one) => bytes + sum(one, state), 0);
  const column = (value: (one: TestSegment) => number): Float64Array =>
    Float64Array.from(of, value);
  const offsets = listed.flatMap((own) =>
    own.map((_, i) => own.slice(0, i).reduce((bytes, [, size]) => bytes + size, 0)),
  );
  const ones = Int32Array.from(blocks, ([state], i) => (state === 0 ? -1 : i));
  return {
    device: 0,
    moment: { moment: 7, timeMs: null, step: null, phase: "" },
    action: "alloc",
    actionBytes: null,
    numSegments: of.length,
    reservedBytes: total(0) + total(1) + total(2),
    allocatedBytes: total(1),
    pendingBytes: total(2),
    freeBytes: total(0),
    wholeBytes: of.reduce(
      (bytes, one) => bytes + (sum(one, 1) + sum(one, 2) === 0 ? sum(one, 0) : 0),
      0,
    ),
    pinnedBytes: 0,
    segments: {
      address: column(({ address }) => address),
      totalBytes: column((one) => sum(one, 0) + sum(one, 1) + sum(one, 2)),
      allocatedBytes: column((one) => sum(one, 1)),
      pendingBytes: column((one) => sum(one, 2)),
      freeBytes: column((one) => sum(one, 0)),
      requestedBytes: column((one) => sum(one, 1) + sum(one, 2)),
      largestFreeBytes: column((one) =>
        Math.max(0, ...one.blocks.map(([state, size]) => (state === 0 ? size : 0))),
      ),
      numActive: Int32Array.from(
        of,
        (one) => one.blocks.filter(([state]) => state > 0).length,
      ),
      kind: new Int32Array(of.length),
      numAlike: Int32Array.from(of, (one) => one.numAlike ?? 1),
      opened: Int32Array.from(of, (_, i) => i - 1),
      stack: new Int32Array(of.length).fill(-1),
      firstBlock: Int32Array.from(listed, (_, i) => listed.slice(0, i).flat().length),
      numBlocks: Int32Array.from(listed, (own) => own.length),
    },
    blocks: {
      offset: Float64Array.from(offsets),
      size: Float64Array.from(blocks, ([, size]) => size),
      state: Uint8Array.from(blocks, ([state]) => state),
      life: ones,
      stack: ones.slice(),
      category: Uint8Array.from(blocks, ([state]) => (state === 0 ? 2 : 1)),
    },
    kinds: ["large"],
    categories: [
      { key: "p", label: "p", category: "param", stack: null, bytes: 0 },
      { key: "a", label: "a", category: "activation", stack: null, bytes: total(1) },
    ],
    freeSizes: {
      fromBytes: new Float64Array(0),
      numSplit: new Int32Array(0),
      splitBytes: new Float64Array(0),
      numWhole: new Int32Array(0),
      wholeBytes: new Float64Array(0),
    },
    arenas: {
      pool: new Int32Array(0),
      stream: new Int32Array(0),
      isLarge: new Uint8Array(0),
      reservedBytes: new Float64Array(0),
      freeBytes: new Float64Array(0),
      largestFreeBytes: new Float64Array(0),
      numFree: new Int32Array(0),
      releasableBytes: new Float64Array(0),
    },
    why: {
      tone: "plain",
      sentence: "",
      more: [],
      figures: [],
      culprit: -1,
      askedBytes: null,
      lives: new Int32Array(0),
    },
    pins: { address: [], text: [] },
    pinners: {
      stack: new Int32Array(0),
      aloneBytes: new Float64Array(0),
      sharedBytes: new Float64Array(0),
      liveBytes: new Float64Array(0),
      numSegments: new Int32Array(0),
    },
    oddities: [],
  };
}
