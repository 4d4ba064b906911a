import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ApiError } from "./client";
import { TileLoader, type TileSource } from "./tiles";

/** Numbers from 0 to 100; a tile has those from `low` up to `high`. */
interface Part {
  readonly low: number;
  readonly high: number;
}

interface TestRequest extends Part {
  readonly signal: AbortSignal;
  readonly answer: () => void;
  readonly fail: (error: unknown) => void;
}

const ALL = { low: 0, high: 100 };

function covers(tile: Part, look: Part): boolean {
  return tile.low <= look.low && tile.high >= look.high;
}

/** A picture whose answers are given by hand: everything first, then what is looked at. */
function byHand(changes: Partial<TileSource<Part, Part, Part>> = {}) {
  const asked: TestRequest[] = [];
  const isWhole = (tile: Part): boolean => covers(tile, ALL);
  const source: TileSource<Part, Part, Part> = {
    stamp: "a",
    most: 2,
    wanted: (tiles, look) => {
      if (!tiles.some(isWhole)) return ALL;
      const sharp = tiles.some(
        (tile) => tile !== tiles.find(isWhole) && covers(tile, look),
      );
      return sharp || isWhole(look) ? null : look;
    },
    keyOf: (wanted) => JSON.stringify(wanted),
    isSpent: (wanted, look) => wanted.high < look.low || wanted.low > look.high,
    ask: (wanted, signal) =>
      new Promise((resolve, reject) => {
        asked.push({
          ...wanted,
          signal,
          answer: () => resolve({ ...wanted }),
          fail: reject,
        });
      }),
    isWhole,
    shown: (tiles, look, before) => {
      const whole = tiles.find(isWhole);
      const part = tiles.findLast((tile) => tile !== whole && covers(tile, look));
      return whole === undefined
        ? before
        : part === undefined
          ? [whole]
          : [whole, part];
    },
    ...changes,
  };
  const loader = new TileLoader<Part, Part, Part>();
  loader.about(source);
  const answer = async (): Promise<void> => {
    asked.at(-1)?.answer();
    await vi.advanceTimersByTimeAsync(1);
  };
  const look = async (low: number, high: number, settled = true): Promise<void> => {
    loader.look({ low, high }, settled);
    await vi.advanceTimersByTimeAsync(1);
  };
  return { asked, source, loader, answer, look };
}

describe("tiles", () => {
  beforeEach(() => {
    vi.useFakeTimers();
    vi.stubGlobal("window", globalThis);
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it("are asked for once something is looked at, everything first", async () => {
    const { asked, loader, answer, look } = byHand();
    expect(asked).toHaveLength(0);
    await look(10, 20);
    expect(asked).toMatchObject([ALL]);
    expect(loader.loading).toBe(true);
    await answer();
    expect(asked).toMatchObject([ALL, { low: 10, high: 20 }]);
    expect(loader.shown).toMatchObject([ALL]);
    await answer();
    expect(loader.loading).toBe(false);
    expect(loader.shown).toMatchObject([ALL, { low: 10, high: 20 }]);
    expect(loader.shown).toBe(loader.shown);
    expect(loader.error.value).toBeNull();
  });

  it("are kept for the way back, the newest ones and that of everything", async () => {
    const { asked, loader, answer, look } = byHand();
    await look(0, 100);
    await answer();
    for (const low of [10, 30, 50]) {
      await look(low, low + 10);
      await answer();
    }
    expect(asked).toHaveLength(4);
    await look(30, 40);
    expect(asked).toHaveLength(4);
    expect(loader.shown).toMatchObject([ALL, { low: 30 }]);
    await look(10, 20);
    expect(asked).toHaveLength(5);
    expect(loader.whole).toMatchObject(ALL);
  });

  it("that are too much go, but for the newest; their memory is given back", async () => {
    const free = vi.fn();
    const share = (tile: Part): number => (covers(tile, ALL) ? 0 : 0.6);
    const { loader, answer, look } = byHand({ free, share, most: 9 });
    await look(0, 100);
    await answer();
    for (const low of [10, 30]) {
      await look(low, low + 10);
      await answer();
    }
    expect(loader.whole).not.toBeNull();
    await vi.advanceTimersByTimeAsync(1000);
    expect(free.mock.calls).toMatchObject([[{ low: 10 }]]);
  });

  it("that nobody looks at any more are given up, and no other request is", async () => {
    const { asked, answer, look } = byHand();
    await look(0, 100);
    await answer();
    await look(10, 20);
    await look(15, 25);
    expect(asked[1]?.signal.aborted).toBe(false);
    await look(60, 70);
    expect(asked[1]?.signal.aborted).toBe(true);
    expect(asked[2]).toMatchObject({ low: 60 });
  });

  it("wait while a gesture goes on, and are of where it ends", async () => {
    const { asked, answer, look } = byHand();
    await look(0, 100);
    await answer();
    await look(10, 20, false);
    await look(12, 22, false);
    expect(asked).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(300);
    expect(asked[1]).toMatchObject({ low: 12, high: 22 });
  });

  it("say what failed, and are asked for again later", async () => {
    const { asked, loader, look } = byHand();
    await look(0, 100);
    const error = new ApiError("It is being opened.", "here", "Wait.", "server");
    asked[0]?.fail(error);
    await vi.advanceTimersByTimeAsync(10);
    expect(loader.error.value).toBe(error);
    await look(10, 20);
    expect(asked).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(1100);
    expect(asked).toHaveLength(2);
  });

  it("of another picture replace what is shown: at once, or once they are there", async () => {
    const { loader, source, answer, look } = byHand({ kin: "k" });
    await look(0, 100);
    await answer();
    const [first] = loader.shown;
    loader.about({ ...source, stamp: "b" });
    expect(loader.shown).toEqual([first]);
    await answer();
    expect(loader.shown[0]).not.toBe(first);
    loader.about({ ...source, stamp: "c", kin: "other" });
    expect(loader.shown).toEqual([]);
    loader.close();
  });
});
