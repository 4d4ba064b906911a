import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { DebouncedUrlWrite, writePendingUrls } from "./debounced_url";

/** An address, as the shell keeps it: whoever changes it has all others written first. */
class Address {
  readonly seen: string[] = [];

  write(word: string): void {
    writePendingUrls();
    this.seen.push(word);
  }
}

describe("words on their way to the address", () => {
  const address = (): Address => new Address();
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    writePendingUrls();
    vi.useRealTimers();
  });

  it("are written once, when the gesture rests", () => {
    const { seen } = address();
    const late = new DebouncedUrlWrite(100);
    for (const word of ["a", "b", "c"]) {
      vi.advanceTimersByTime(60);
      late.put(() => seen.push(word));
    }
    expect(seen).toEqual([]);
    vi.advanceTimersByTime(100);
    vi.advanceTimersByTime(1000);
    expect(seen).toEqual(["c"]);
  });

  it("stand there before whatever else is written", () => {
    const bar = address();
    const range = new DebouncedUrlWrite();
    const moment = new DebouncedUrlWrite();
    range.put(() => bar.write("range"));
    moment.put(() => bar.write("moment"));
    bar.write("page");
    expect(bar.seen.at(-1)).toBe("page");
    expect([...bar.seen].sort()).toEqual(["moment", "page", "range"]);
    vi.advanceTimersByTime(1000);
    expect(bar.seen).toHaveLength(3);
  });

  it("are not written where a link has said another", () => {
    const bar = address();
    const late = new DebouncedUrlWrite();
    late.put(() => bar.write("old"));
    late.drop();
    writePendingUrls();
    vi.advanceTimersByTime(1000);
    expect(bar.seen).toEqual([]);
  });

  it("may be put again by what they write", () => {
    const bar = address();
    const late = new DebouncedUrlWrite();
    late.put(() => {
      late.put(() => bar.write("second"));
      bar.seen.push("first");
    });
    writePendingUrls();
    expect(bar.seen).toEqual(["first"]);
    vi.advanceTimersByTime(1000);
    expect(bar.seen).toEqual(["first", "second"]);
  });
});
