import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ApiError, Client, type Query } from "../client";
import { runsBody } from "../test_bodies";
import { Watch, type Live } from "./watch";
import type { RunsResponse } from "../types.gen";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** A server whose answers the test gives by hand, and a clock it moves by hand. */
class Stage {
  readonly asked: {
    url: string;
    signal: AbortSignal | null;
    answer: (r: Response) => void;
  }[] = [];
  readonly seen: Live<RunsResponse>[] = [];
  readonly #started = vi.spyOn(globalThis, "setTimeout");
  readonly answered = new Set<number>();
  visible = true;
  #shown: () => void = () => undefined;

  readonly watch = new Watch(
    new Client(
      "",
      (url, init) =>
        new Promise((resolve, reject) => {
          const signal = init.signal ?? null;
          signal?.addEventListener("abort", () =>
            reject(new DOMException("stopped", "AbortError")),
          );
          this.asked.push({ url, signal, answer: resolve });
        }),
    ),
    "runs",
    (live) => this.seen.push(live),
    {
      visible: () => this.visible,
      onShown: (callback) => {
        this.#shown = callback;
        return () => undefined;
      },
    },
  );

  /** How long it waited before each question after the first. */
  get pauses(): readonly (number | undefined)[] {
    return this.#started.mock.calls.map(([, delayMs]) => delayMs);
  }

  ask(query: Query | null, pollMs = 1000): void {
    this.watch.ask(query, pollMs);
  }

  async answer(version: string, index = this.asked.length - 1): Promise<void> {
    this.answered.add(index);
    this.asked[index]?.answer(
      new Response(runsBody(version), { headers: { ETag: `"${version}"` } }),
    );
    await settle();
  }

  async unchanged(): Promise<void> {
    this.answered.add(this.asked.length - 1);
    this.asked.at(-1)?.answer(new Response(null, { status: 304 }));
    await settle();
  }

  async fail(): Promise<void> {
    this.asked.at(-1)?.answer(Response.json({ what: "no" }, { status: 500 }));
    await settle();
  }

  /** Lets the running pause end. */
  async tick(): Promise<void> {
    vi.runOnlyPendingTimers();
    await settle();
  }

  async show(): Promise<void> {
    this.visible = true;
    this.#shown();
    await settle();
  }

  get numUnderWay(): number {
    const open = (request: { signal: AbortSignal | null }, i: number): boolean =>
      request.signal?.aborted === false && !this.answered.has(i);
    return this.asked.filter(open).length;
  }

  get version(): string | undefined {
    return this.watch.live.data?.pluginVersion;
  }
}

async function settle(): Promise<void> {
  for (let i = 0; i < 100; i += 1) await Promise.resolve();
}

describe("Watch", () => {
  it("asks once, waits the pause, asks again", async () => {
    const stage = new Stage();
    stage.ask({ run: "a" }, 1000);
    await stage.answer("1");
    expect(stage.version).toBe("1");
    expect(stage.asked).toHaveLength(1);
    expect(stage.pauses).toEqual([1000]);
    await stage.tick();
    await stage.answer("2");
    expect(stage.version).toBe("2");
  });

  it("keeps the old answer, marked stale, until the new one comes", async () => {
    const stage = new Stage();
    stage.ask({ run: "a" });
    await stage.answer("of a");
    stage.ask({ run: "b" });
    expect(stage.watch.live).toMatchObject({ stale: true });
    expect(stage.version).toBe("of a");
    await stage.answer("of b");
    expect(stage.watch.live.stale).toBe(false);
    expect(stage.version).toBe("of b");
  });

  it("aborts what is under way when the subject changes; the late answer is lost", async () => {
    const stage = new Stage();
    stage.ask({ run: "a" });
    stage.ask({ run: "b" });
    expect(stage.asked[0]?.signal?.aborted).toBe(true);
    await stage.answer("of b", 1);
    await stage.answer("of a", 0);
    expect(stage.version).toBe("of b");
    expect(stage.seen.every((live) => live.error === null)).toBe(true);
  });

  it("lets a request finish while only the range moves, then asks for the last range", async () => {
    const stage = new Stage();
    stage.ask({ run: "a", x0: 0 });
    for (let x0 = 1; x0 <= 5; x0 += 1) stage.ask({ run: "a", x0 });
    expect(stage.asked).toHaveLength(1);
    await stage.answer("0..");
    expect(stage.watch.live).toMatchObject({ stale: true });
    expect(stage.version).toBe("0..");
    expect(stage.asked.map((request) => request.url)).toEqual([
      "runs?run=a&x0=0",
      "runs?run=a&x0=5",
    ]);
    await stage.answer("5..");
    expect(stage.watch.live.stale).toBe(false);
  });

  it("asks nothing while hidden and at once when shown", async () => {
    const stage = new Stage();
    stage.ask({});
    await stage.answer("1");
    stage.visible = false;
    await stage.tick();
    await stage.tick();
    expect(stage.asked).toHaveLength(1);
    await stage.show();
    expect(stage.asked).toHaveLength(2);
  });

  it("keeps the data on failure, waits longer each time, and recovers", async () => {
    const stage = new Stage();
    stage.ask({}, 1000);
    await stage.answer("1");
    for (let i = 0; i < 6; i += 1) {
      await stage.tick();
      await stage.fail();
      expect(stage.watch.live.error).toBeInstanceOf(ApiError);
      expect(stage.version).toBe("1");
    }
    expect(stage.pauses).toEqual([1000, 2000, 4000, 8000, 15000, 15000, 15000]);
    await stage.tick();
    await stage.answer("2");
    expect(stage.watch.live).toMatchObject({ error: null, stale: false });
    expect(stage.pauses.at(-1)).toBe(1000);
  });

  it("never has two requests under way, whatever is asked", async () => {
    const stage = new Stage();
    for (let i = 0; i < 50; i += 1) {
      stage.ask({ run: `${i % 3}`, x0: i });
      stage.watch.refresh();
      if (i % 7 === 0) await stage.answer(`${i}`);
      expect(stage.numUnderWay, `after ${i}`).toBeLessThanOrEqual(1);
    }
    expect(stage.asked.length).toBeGreaterThan(10);
    await stage.answer("last");
    while (stage.numUnderWay > 0) await stage.answer("last");
    expect(stage.asked.at(-1)?.url).toBe("runs?run=1&x0=49");
    expect(stage.watch.live.stale).toBe(false);
  });

  it("polls no more once closed or asked for nothing", async () => {
    const stage = new Stage();
    stage.ask({});
    await stage.answer("1");
    stage.ask(null);
    expect(stage.watch.live.data).toBeNull();
    await stage.tick();
    expect(stage.asked).toHaveLength(1);
    stage.ask({});
    stage.watch.close();
    expect(stage.asked.at(-1)?.signal?.aborted).toBe(true);
  });

  it("asks soon again for what has just changed, then rests", async () => {
    const stage = new Stage();
    stage.ask({}, 10_000);
    await stage.answer("1");
    await stage.tick();
    await stage.answer("2");
    await stage.tick();
    await stage.unchanged();
    await stage.tick();
    await stage.unchanged();
    expect(stage.pauses).toEqual([1000, 1000, 10_000, 10_000]);
    expect(stage.version).toBe("2");
  });

  it("asks until the first answer with an endless pause", async () => {
    const stage = new Stage();
    stage.ask({}, Number.POSITIVE_INFINITY);
    await stage.fail();
    expect(stage.pauses).toEqual([1500]);
    await stage.tick();
    await stage.answer("1");
    expect(stage.version).toBe("1");
    expect(stage.pauses).toEqual([1500]);
  });
});
