import { describe, expect, it } from "vitest";
import { categoryColour, categoryColours, categoryLabel } from "./category";
import { formatSigned, formatSignedExact } from "./words/quantity";

describe("categoryColours", () => {
  it("gives each group's first name its colour and the next ones paler ones", () => {
    const colours = categoryColours("light", [
      { group: "param" },
      { group: "param" },
      { group: "grad" },
      { group: "param" },
    ]);
    expect(colours[0]).toBe(categoryColour("light", "param"));
    expect(colours[2]).toBe(categoryColour("light", "grad"));
    expect(new Set(colours).size).toBe(4);
    for (const colour of colours) expect(colour).toMatch(/^#[0-9a-f]{6}$/);
  });

  it("never runs out, however many names a group has", () =>
    expect(categoryColour("dark", "comm", 99)).toMatch(/^#[0-9a-f]{6}$/));
});

describe("categoryLabel", () =>
  it("has words for what is known and reads the rest", () => {
    expect(categoryLabel("unsharded_param")).toBe("Unsharded params");
    expect(categoryLabel("kv_cache")).toBe("Kv cache");
  }));

describe("formatSigned", () =>
  it("always says which way", () => {
    expect(formatSigned(2 ** 20, "bytes")).toBe("+1.00 MiB");
    expect(formatSigned(-(2 ** 20), "bytes")).toBe("−1.00 MiB");
    expect(formatSigned(0, "bytes")).toBe("0 B");
    expect(formatSigned(NaN, "bytes")).toBe("–");
    expect(formatSigned(3, "count")).toBe("+3");
    expect(formatSignedExact(1234, "bytes")).toBe("+1,234 bytes");
  }));
