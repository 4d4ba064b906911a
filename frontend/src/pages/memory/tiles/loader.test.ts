import { describe, expect, it, vi } from "vitest";
import { ApiError, Client } from "../../../api/client";
import type {
  AllocationHoldersResponse,
  AllocationsResponse,
} from "../../../api/types.gen";
import type { Viewport } from "../../../render/viewport";
import { tileAnswer } from "../../../widgets/block_stack/test_tile";
import { BlockTile, WHOLE, type TileSpan } from "../../../widgets/block_stack/tile";
import { TileLoader } from "./loader";
import {
  bestTile,
  tileQuery,
  wantedTile,
  type TileSubject,
  type TileView,
} from "./wanted";

const WORLD: Viewport = { x0: 0, x1: 100_000, y0: 1000, y1: 0 };
const SIZE = { widthPx: 1000, heightPx: 400 };

function at(x0: number, x1: number, y1 = 0, y0 = 1000): TileView {
  return { view: { x0, x1, y0, y1 }, world: WORLD, size: SIZE };
}

/** A tile of events `low` to `high` in so many columns. */
function tile(
  low: number,
  high: number,
  columns: number,
  span: TileSpan = WHOLE,
  minBytes = 1,
): BlockTile {
  const answer: AllocationsResponse = {
    ...tileAnswer(),
    minBytes,
    columns: {
      edge: Float64Array.from(
        { length: columns + 1 },
        (_, i) => low + (i / columns) * (high - low),
      ),
      moment: new Int32Array(columns),
      active: new Float64Array(columns),
      reserved: new Float64Array(columns),
    },
  };
  return new BlockTile(answer, span, "category");
}

describe("what is asked for", () => {
  const whole = tile(0, 100_000, 1000);

  it("is nothing where everything is in sight and sharp", () => {
    expect(wantedTile([whole], at(0, 100_000), "event")).toBeNull();
    expect(bestTile([whole], at(0, 100_000))).toBe(whole);
  });

  it("is the part in sight with half of it on either side, twice as many columns", () => {
    const wanted = wantedTile([whole], at(40_000, 50_000), "event");
    expect(wanted).toEqual({
      span: { low: 35_000, high: 55_000, y0: null, y1: null },
      px: 2000,
      rows: 400,
    });
  });

  it("stops at the ends of the history, and of all of it needs no ends", () => {
    expect(wantedTile([whole], at(0, 1000), "event")?.span.low).toBe(0);
    expect(wantedTile([], at(10_000, 95_000), "event")?.span).toEqual({
      low: null,
      high: null,
      y0: null,
      y1: null,
    });
  });

  it("is nothing while a tile that is there has room to pan", () => {
    const part = tile(35_000, 55_000, 2000, { ...WHOLE, low: 35_000, high: 55_000 });
    expect(wantedTile([whole, part], at(41_000, 51_000), "event")).toBeNull();
    expect(wantedTile([whole, part], at(45_000, 55_000), "event")).not.toBeNull();
    expect(bestTile([whole, part], at(45_000, 55_000))).toBe(part);
    // Twice as far out it is too fine: peaks would hide between pixels.
    expect(bestTile([part], at(35_000, 55_000))).not.toBeNull();
    expect(bestTile([tile(35_000, 55_000, 6000)], at(35_000, 55_000))).toBeNull();
  });

  it("is nothing finer than events", () => {
    const events = tile(400, 600, 200, { ...WHOLE, low: 400, high: 600 });
    expect(wantedTile([events], at(480, 520), "event")).toBeNull();
  });

  it("is higher where the bytes are zoomed, and then cut off", () => {
    const wanted = wantedTile(
      [tile(0, 100_000, 1000)],
      at(0, 100_000, 400, 600),
      "event",
    );
    // Nothing of the tile is too thin, so there is nothing to gain.
    expect(wanted).not.toBeNull();
    expect(wanted?.span).toEqual({ low: null, high: null, y0: 300, y1: 700 });
    expect(wanted?.rows).toBe(800);
  });

  it("of times has round ends, so that equal looks ask equal questions", () => {
    const wanted = wantedTile([], at(0.12345, 0.2), "time");
    expect(wanted?.span.low).toBe(0.08517);
  });
});

const SUBJECT: TileSubject = {
  what: "allocations",
  place: { run: "a", history: "h", device: 0, stream: null, pool: null },
  axis: "event",
  order: "category",
  colour: "category",
};

describe("a question", () =>
  it("names ends by the axis", () => {
    const wanted = {
      span: { low: 5, high: 9, y0: null, y1: null },
      px: 10,
      rows: 4,
    };
    expect(tileQuery(SUBJECT, wanted)).toMatchObject({ e0: 5, e1: 9, axis: "event" });
    const timed = tileQuery({ ...SUBJECT, axis: "time" }, wanted);
    expect(timed).toMatchObject({ t0: 5, t1: 9 });
    expect(timed).not.toHaveProperty("e0");
  }));

interface Asked {
  readonly route: string;
  readonly query: Readonly<Record<string, unknown>>;
  readonly signal: AbortSignal;
  readonly answer: (value: unknown) => void;
  readonly fail: (error: unknown) => void;
}

/** A client whose answers are given by hand. */
function handClient(): { readonly client: Client; readonly asked: Asked[] } {
  const asked: Asked[] = [];
  const client = new Client();
  vi.spyOn(client, "get").mockImplementation(
    (route: string, query: object, signal?: AbortSignal) =>
      new Promise<never>((resolve, reject) => {
        asked.push({
          route,
          query: query as Asked["query"],
          signal: signal ?? new AbortController().signal,
          answer: resolve as (value: unknown) => void,
          fail: reject,
        });
      }),
  );
  return { client, asked };
}

const HOLDERS: AllocationHoldersResponse = {
  device: 0,
  moment: new Int32Array(0),
  stack: Int32Array.of(-2),
  column: new Uint16Array(0),
  slot: new Uint16Array(0),
  change: new Float64Array(0),
  allocated: new Float64Array(0),
};

const settle = (): Promise<void> => new Promise((resolve) => setTimeout(resolve));

describe("the loader", () => {
  vi.stubGlobal("window", globalThis);
  const part = tile(35_000, 55_000, 2000).answer;
  const whole = tile(0, 100_000, 1000).answer;

  it("asks for everything, then for its holders, and shows each as it comes", async () => {
    const { client, asked } = handClient();
    const onTiles = vi.fn();
    const loader = new TileLoader(client, { onTiles, onFailure: vi.fn() });
    loader.about(SUBJECT);
    expect(asked).toHaveLength(0);
    loader.look(at(0, 100_000), true);
    expect(asked[0]).toMatchObject({
      route: "allocations",
      query: { e0: null, px: 1000 },
    });
    expect(loader.loading).toBe(true);
    asked[0]?.answer(whole);
    await settle();
    expect(loader.tiles).toHaveLength(1);
    expect(asked[1]).toMatchObject({ route: "allocation_holders" });
    expect(asked[1]?.query).not.toHaveProperty("order");
    asked[1]?.answer(HOLDERS);
    await settle();
    const [shown] = loader.tiles;
    expect(shown && loader.holders(shown)).not.toBeNull();
    expect(asked).toHaveLength(2);
    loader.close();
  });

  it("lays the part looked at over everything, and goes back without asking", async () => {
    const { client, asked } = handClient();
    const loader = new TileLoader(client, { onTiles: vi.fn(), onFailure: vi.fn() });
    loader.about(SUBJECT);
    loader.look(at(0, 100_000), true);
    asked[0]?.answer(whole);
    await settle();
    loader.look(at(40_000, 50_000), true);
    // Holders of everything were under way: the picture goes first.
    expect(asked[1]?.signal.aborted).toBe(true);
    asked[2]?.answer(part);
    await settle();
    expect(loader.tiles).toHaveLength(2);
    const { length } = asked.filter(({ route }) => route === "allocations");
    loader.look(at(0, 100_000), true);
    expect(loader.tiles).toHaveLength(1);
    loader.look(at(40_000, 50_000), true);
    expect(loader.tiles).toHaveLength(2);
    expect(asked.filter(({ route }) => route === "allocations")).toHaveLength(length);
    loader.close();
  });

  it("gives up what is out of sight, and lets finish what is not", async () => {
    const { client, asked } = handClient();
    const loader = new TileLoader(client, { onTiles: vi.fn(), onFailure: vi.fn() });
    loader.about(SUBJECT);
    loader.look(at(0, 100_000), true);
    asked[0]?.answer(whole);
    await settle();
    loader.look(at(40_000, 50_000), true);
    const first = asked.at(-1);
    loader.look(at(41_000, 51_000), true);
    expect(first?.signal.aborted).toBe(false);
    loader.look(at(80_000, 90_000), true);
    expect(first?.signal.aborted).toBe(true);
    expect(asked.at(-1)?.query).toMatchObject({ e0: 75_000, e1: 95_000 });
    loader.close();
  });

  it("keeps the old picture while other colours come, and drops it for another device", async () => {
    const { client, asked } = handClient();
    const loader = new TileLoader(client, { onTiles: vi.fn(), onFailure: vi.fn() });
    loader.about(SUBJECT);
    loader.look(at(0, 100_000), true);
    asked[0]?.answer(whole);
    await settle();
    loader.about({ ...SUBJECT, colour: "module" });
    expect(loader.tiles).toHaveLength(1);
    loader.about({ ...SUBJECT, place: { ...SUBJECT.place, device: 1 } });
    expect(loader.tiles).toHaveLength(0);
    loader.close();
  });

  it("frees what it no longer keeps, and nothing that is shown", async () => {
    vi.useFakeTimers();
    const freed = vi.spyOn(BlockTile.prototype, "free").mockReturnValue();
    const { client, asked } = handClient();
    const loader = new TileLoader(client, { onTiles: vi.fn(), onFailure: vi.fn() });
    const answer = async (value: unknown): Promise<void> => {
      asked.findLast(({ route }) => route === "allocations")?.answer(value);
      await vi.advanceTimersByTimeAsync(10);
    };
    loader.about(SUBJECT);
    loader.look(at(0, 100_000), true);
    await answer(whole);
    loader.look(at(40_000, 50_000), true);
    await answer(part);
    const [everything, first] = loader.tiles;
    // Other colours: what is shown goes on until the new picture is there.
    loader.about({ ...SUBJECT, colour: "stack" });
    await vi.advanceTimersByTimeAsync(5000);
    expect(freed).not.toHaveBeenCalled();
    expect(loader.tiles).toEqual([everything, first]);
    await answer(whole);
    expect(loader.tiles).not.toContain(everything);
    await vi.advanceTimersByTimeAsync(5000);
    expect(new Set(freed.mock.contexts)).toEqual(new Set([everything, first]));
    expect(loader.tiles).toHaveLength(1);
    loader.close();
    freed.mockRestore();
    vi.useRealTimers();
  });

  it("says what failed and asks again later", async () => {
    vi.useFakeTimers();
    const { client, asked } = handClient();
    const onFailure = vi.fn();
    const loader = new TileLoader(client, { onTiles: vi.fn(), onFailure });
    loader.about(SUBJECT);
    loader.look(at(0, 100_000), true);
    asked[0]?.fail(new ApiError("It is being opened.", "here", "Wait.", "server"));
    await vi.advanceTimersByTimeAsync(10);
    expect(onFailure).toHaveBeenCalledTimes(1);
    expect(asked).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(1100);
    expect(asked).toHaveLength(2);
    loader.close();
    vi.useRealTimers();
  });
});
