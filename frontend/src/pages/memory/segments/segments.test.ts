import { describe, expect, it, vi } from "vitest";
import { ApiError, type Query } from "../../../api/client";
import type { SegmentRequest, SegmentsResponse } from "../../../api/types.gen";
import { segmentsAnswer } from "../../../widgets/segment_map/test_segments";
import { rangeWords, readSegments, segmentWord } from "./state/params";
import { pinWords, whyWords } from "./state/why";
import { StateLoader } from "./state/states";

const GIB = 2 ** 30;
const FACTS = { pools: ["default"], streams: ["default"] };

const REFUSED: SegmentRequest = {
  isOom: true,
  requestedBytes: 2 * GIB,
  roundedBytes: 2 * GIB,
  isLarge: true,
  stream: 0,
  pool: 0,
  fits: false,
  largestFreeBytes: 0.62 * GIB,
  freeBytes: 5.1 * GIB,
  otherStreamLargestBytes: 0,
  otherPoolLargestBytes: 0,
  releasableBytes: 0,
  newSegmentBytes: 2 * GIB,
  deviceFreeBytes: 1.31 * GIB,
  obstacle: null,
};

/** What the page says of a request, or of none. */
function why(request: SegmentRequest | null, facts = FACTS) {
  const state = segmentsAnswer([
    {
      address: 0x7f0000000000,
      blocks: [
        [1, GIB],
        [0, GIB / 2],
      ],
    },
  ]);
  const pinners = {
    stack: Int32Array.of(3),
    aloneBytes: Float64Array.of(GIB / 2),
    sharedBytes: Float64Array.of(0),
    liveBytes: Float64Array.of(GIB),
    numSegments: Int32Array.of(1),
  };
  const stacks = { stackPlace: (stack: number) => `train.py:${stack}` };
  return whyWords({
    state: { ...state, pinners, request },
    ...{ facts, stacks, byteUnit: "auto" },
  });
}

describe("words of the URL", () => {
  it("are read and checked", () => {
    const params = readSegments(
      new Map([
        ["part", "events"],
        ["moment", "-1"],
        ["scale", "fit"],
        ["size_class", "huge"],
        ["segment", "7f0000000000"],
        ["request", "536870912"],
        ["sort", "largest_free"],
        ["s0", "10"],
        ["s1", "20"],
      ]),
    );
    expect(params).toMatchObject({
      part: "events",
      moment: -1,
      scale: "fit",
      sizeClass: null,
      segment: 0x7f0000000000,
      request: 536870912,
      sort: "largest_free",
      range: { low: 10, high: 20 },
    });
    expect(readSegments(new Map([["scale", "-4"]])).scale).toBe("auto");
  });

  it("come back as they went", () => {
    const words = rangeWords({ low: 10.4, high: 19.2 });
    expect(words).toEqual({ s0: "10", s1: "20" });
    expect(segmentWord(0x7f0000000000)).toBe("7f0000000000");
  });
});

describe("why memory cannot be used", () => {
  it("is what was requested against the largest free block", () => {
    const words = why(REFUSED);
    expect(words.tone).toBe("bad");
    expect(words.sentence).toBe(
      "An allocation of 2.00 GiB failed although 5.10 GiB is free for large requests: the largest free block is 635 MiB.",
    );
    expect(words.figures.map(({ name }) => name)).toContain("Device had");
    expect(words.figures.find(({ isCause }) => isCause)?.name).toBe(
      "Largest free block",
    );
    expect(words.culprit).toBe(3);
  });

  it("names the fewest blocks that would have to go", () => {
    const obstacle = {
      segmentAddress: 0x7f0000000000,
      ...{ offset: 0, size: 1.5 * GIB, numLive: 1, liveBytes: GIB, stack: 7 },
    };
    const words = why({ ...REFUSED, obstacle });
    expect(words.more[0]).toBe(
      "Freeing one block (1.00 GiB, train.py:7) would make room for it.",
    );
    expect(words.culprit).toBe(7);
    const more = why({ ...REFUSED, obstacle: { ...obstacle, numLive: 4 } }).more;
    expect(more[0]).toContain("4 blocks (1.00 GiB, mostly train.py:7)");
  });

  it("tells too little from pieces, and other streams' blocks", () => {
    expect(why({ ...REFUSED, freeBytes: GIB }).sentence).toContain("only 1.00 GiB");
    const other = why(
      { ...REFUSED, otherStreamLargestBytes: 3 * GIB },
      { ...FACTS, streams: ["default", "0x7"] },
    );
    expect(other.more.join(" ")).toContain("Another stream has a free block");
    expect(other.sentence).toContain("on stream default");
    const huge = why({ ...REFUSED, freeBytes: GIB, newSegmentBytes: 9 * GIB });
    expect(huge.more[0]).toContain("larger than all that is reserved");
    expect(huge.culprit).toBe(-1);
  });

  it("says that one fits", () => {
    const fits = { ...REFUSED, fits: true, isOom: false, largestFreeBytes: 3 * GIB };
    const words = why(fits);
    expect(words).toMatchObject({ tone: "ok", culprit: -1 });
    expect(words.sentence).toBe("2.00 GiB fits: the largest free block is 3.00 GiB.");
  });

  it("is what is free, and who pins it, where nothing was requested", () => {
    const words = why(null);
    expect(words.sentence).toBe(
      "512 MiB of 1.50 GiB reserved is free, the largest block 512 MiB; none of it can be returned to the device.",
    );
    expect(words.more).toEqual(["train.py:3 alone keeps 512 MiB from being returned."]);
    expect(words.culprit).toBe(3);
  });

  it("stands beside a segment that one line keeps", () => {
    const pins = {
      segmentAddress: Float64Array.of(0x7f),
      liveBytes: Float64Array.of(GIB),
      numLive: Int32Array.of(1),
      stack: Int32Array.of(-1),
    };
    const words = pinWords({ ...segmentsAnswer([]), pins }, null, "auto");
    expect(words.get(0x7f)).toBe("pinned by one block of 1.00 GiB");
  });
});

/** A server whose answers arrive when the test says so. */
class Slow {
  readonly asked: (number | string | null)[] = [];
  readonly #open: {
    readonly moment: number | string | null;
    readonly resolve: (state: SegmentsResponse) => void;
    readonly reject: (error: unknown) => void;
  }[] = [];

  get = (_: string, query: Query, signal?: AbortSignal): Promise<never> =>
    new Promise((resolve, reject) => {
      const moment = query["moment"] ?? null;
      this.asked.push(moment);
      this.#open.push({ moment, resolve: resolve as never, reject });
      signal?.addEventListener("abort", () =>
        reject(new DOMException("gone", "AbortError")),
      );
    });

  async answer(moment: number): Promise<void> {
    const at = this.#open.findIndex((one) => one.moment === moment);
    const [open] = this.#open.splice(at, 1);
    const state = segmentsAnswer([]);
    open?.resolve({ ...state, moment: { ...state.moment, moment } });
    await Promise.resolve();
    await Promise.resolve();
  }

  async fail(moment: number): Promise<void> {
    const at = this.#open.findIndex((one) => one.moment === moment);
    const [open] = this.#open.splice(at, 1);
    open?.reject(new ApiError("no", "there", "wait", "server"));
    await Promise.resolve();
    await Promise.resolve();
  }
}

function loading(): {
  server: Slow;
  loader: StateLoader;
  shown: number[];
  failed: (ApiError | null)[];
} {
  const server = new Slow();
  const shown: number[] = [];
  const failed: (ApiError | null)[] = [];
  const loader = new StateLoader(server as never, {
    onState: (state) => shown.push(state.moment.moment),
    onFailure: (error) => failed.push(error),
  });
  loader.about({ run: "a" });
  return { server, loader, shown, failed };
}

describe("states of the allocator", () => {
  it("asks for the newest moment alone while a drag goes on", async () => {
    const { server, loader, shown } = loading();
    for (const moment of [1, 2, 3, 4, 5]) loader.show(moment);
    expect(server.asked).toEqual([1]);
    await server.answer(1);
    expect(server.asked).toEqual([1, 5]);
    await server.answer(5);
    expect(shown).toEqual([1, 5]);
  });

  it("drops what arrives after a newer one is shown", async () => {
    const { server, loader, shown } = loading();
    loader.show(5);
    await server.answer(5);
    loader.show(6);
    loader.show(5);
    await server.answer(6);
    expect(shown).toEqual([5]);
  });

  it("has the next states at hand while it plays", async () => {
    const { server, loader, shown } = loading();
    loader.show(10);
    await server.answer(10);
    loader.ahead([11, 12, 13, 14]);
    expect(server.asked).toEqual([10, 11, 12, 13]);
    await server.answer(12);
    expect([loader.has(11), loader.has(12)]).toEqual([false, true]);
    loader.show(12);
    expect(shown).toEqual([10, 12]);
    expect(server.asked).toHaveLength(4);
  });

  it("forgets everything about another history", async () => {
    const { server, loader, shown } = loading();
    loader.show(40);
    await server.answer(40);
    loader.about({ run: "b" });
    expect(server.asked).toEqual([40, 40]);
    await server.answer(40);
    expect(shown).toEqual([40, 40]);
  });

  it("tells a failure and asks again after a pause", async () => {
    vi.useFakeTimers();
    try {
      const { server, loader, shown, failed } = loading();
      loader.show(3);
      await server.fail(3);
      expect(failed[0]?.what).toBe("no");
      vi.advanceTimersByTime(2_000);
      await server.answer(3);
      expect(shown).toEqual([3]);
      expect(failed.at(-1)).toBeNull();
    } finally {
      vi.useRealTimers();
    }
  });
});
