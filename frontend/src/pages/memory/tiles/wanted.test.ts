import { describe, expect, it } from "vitest";
import type { AllocationsResponse } from "../../../api/types.gen";
import type { Viewport } from "../../../render/viewport";
import type { BlockView } from "../../../widgets/block_stack/picture";
import { tileAnswer, WHOLE } from "../../../widgets/block_stack/test_tile";
import { BlockTile, type TileSpan } from "../../../widgets/block_stack/tile";
import {
  isSpent,
  shownTiles,
  tileQuery,
  wantedTile,
  type TileSubject,
} from "./use_tiles";

const WORLD: Viewport = { x0: 0, x1: 100_000, y0: 1000, y1: 0 };
const SIZE = { widthPx: 1000, heightPx: 400 };

function sightOf(x0: number, x1: number, y1 = 0, y0 = 1000): BlockView {
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
    expect(wantedTile([whole], sightOf(0, 100_000), "event")).toBeNull();
    expect(shownTiles([whole], sightOf(0, 100_000), [])).toEqual([whole]);
  });

  it("is the part in sight with half of it on either side, twice as many columns", () => {
    const wanted = wantedTile([whole], sightOf(40_000, 50_000), "event");
    expect(wanted).toEqual({
      low: 35_000,
      high: 55_000,
      y0: null,
      y1: null,
      px: 2000,
      rows: 400,
    });
  });

  it("stops at the ends of the history, and of all of it needs no ends", () => {
    expect(wantedTile([whole], sightOf(0, 1000), "event")?.low).toBe(0);
    expect(wantedTile([], sightOf(10_000, 95_000), "event")).toMatchObject({
      low: null,
      high: null,
      y0: null,
      y1: null,
      px: 1000,
      rows: 400,
    });
  });

  it("is nothing while a tile that is there has room to pan", () => {
    const part = tile(35_000, 55_000, 2000, { ...WHOLE, low: 35_000, high: 55_000 });
    expect(wantedTile([whole, part], sightOf(41_000, 51_000), "event")).toBeNull();
    expect(wantedTile([whole, part], sightOf(45_000, 55_000), "event")).not.toBeNull();
    expect(shownTiles([whole, part], sightOf(45_000, 55_000), [])).toEqual([
      whole,
      part,
    ]);
    expect(shownTiles([whole, part], sightOf(35_000, 55_000), [])).toEqual([
      whole,
      part,
    ]);
    // Where it is too fine peaks would hide between pixels.
    const fine = tile(35_000, 55_000, 6000, { ...WHOLE, low: 35_000, high: 55_000 });
    expect(shownTiles([whole, fine], sightOf(35_000, 55_000), [])).toEqual([whole]);
  });

  it("goes on with what is there until something sharp comes", () => {
    const part = tile(35_000, 55_000, 2000, { ...WHOLE, low: 35_000, high: 55_000 });
    const before = [whole, part];
    expect(shownTiles(before, sightOf(44_000, 46_000), before)).toEqual(before);
    expect(shownTiles(before, sightOf(70_000, 80_000), before)).toEqual([whole]);
    // Of another picture there is nothing yet.
    expect(shownTiles([], sightOf(44_000, 46_000), before)).toBe(before);
  });

  it("is nothing finer than events", () => {
    const events = tile(400, 600, 200, { ...WHOLE, low: 400, high: 600 });
    expect(wantedTile([whole, events], sightOf(480, 520), "event")).toBeNull();
  });

  it("is higher where the bytes are zoomed, and then cut off", () => {
    const wanted = wantedTile(
      [tile(0, 100_000, 1000)],
      sightOf(0, 100_000, 400, 600),
      "event",
    );
    // Nothing of the tile is too thin, so there is nothing to gain.
    expect(wanted).not.toBeNull();
    expect(wanted).toMatchObject({
      low: null,
      high: null,
      y0: 300,
      y1: 700,
      rows: 800,
    });
  });

  it("of times has round ends, so that equal looks ask equal questions", () => {
    const wanted = wantedTile([whole], sightOf(0.12345, 0.2), "time");
    expect(wanted?.low).toBe(0.08517);
  });
});

const SUBJECT: TileSubject = {
  kind: "allocations",
  place: { run: "a", history: "h", device: 0, stream: null, pool: null },
  axis: "event",
  order: "category",
  colour: "category",
};

describe("a question", () => {
  const span = { low: 5, high: 9, y0: null, y1: null, px: 10, rows: 4 };

  it("names ends by the axis", () => {
    expect(tileQuery(SUBJECT, span)).toMatchObject({ e0: 5, e1: 9, axis: "event" });
    const timed = tileQuery({ ...SUBJECT, axis: "time" }, span);
    expect(timed).toMatchObject({ t0: 5, t1: 9 });
    expect(timed).not.toHaveProperty("e0");
  });

  it("is of no use once something else is looked at", () => {
    const wide = { ...span, low: 40_000, high: 60_000 };
    expect(isSpent(wide, sightOf(45_000, 55_000))).toBe(false);
    expect(isSpent(wide, sightOf(70_000, 80_000))).toBe(true);
    expect(isSpent(wide, sightOf(50_000, 50_100))).toBe(true);
    expect(isSpent(WHOLE, sightOf(70_000, 80_000))).toBe(false);
  });
});
