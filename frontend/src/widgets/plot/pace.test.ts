import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Pace } from "./pace";

const pass = (ms: number) => vi.advanceTimersByTime(ms);

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

describe("Pace", () => {
  it("draws a drag at its own rate and never loses where it ended", () => {
    const pace = new Pace(50);
    const drawn: number[] = [];
    for (let frame = 0; frame <= 30; frame += 1) {
      pace.ask(() => drawn.push(frame), false);
      pass(16);
    }
    pass(50);
    expect(drawn.length).toBeLessThanOrEqual(12);
    expect(drawn.length).toBeGreaterThanOrEqual(8);
    expect(drawn[0]).toBe(0);
    expect(drawn.at(-1)).toBe(30);
    expect(drawn).toEqual([...drawn].sort((a, b) => a - b));
  });

  it("draws at once what is urgent, and not again what it overtook", () => {
    const pace = new Pace(50);
    const drawn: string[] = [];
    for (const word of ["first", "waits"]) pace.ask(() => drawn.push(word), false);
    pace.ask(() => drawn.push("urgent"), true);
    pass(1000);
    expect(drawn).toEqual(["first", "urgent"]);
  });

  it("forgets what waits once it is stopped", () => {
    const pace = new Pace(50);
    let drawn = 0;
    for (let i = 0; i < 2; i += 1) pace.ask(() => (drawn += 1), false);
    pace.stop();
    pass(1000);
    expect(drawn).toBe(1);
  });
});
