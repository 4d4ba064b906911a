import { describe, expect, it } from "vitest";
import css from "./tokens.css?raw";
import { tokens, type Theme } from "./tokens";

function declared(theme: Theme): Map<string, string> {
  const blocks = css.split("}");
  const block = blocks.find(
    (candidate) => candidate.includes("data-theme") === (theme === "dark"),
  );
  const declarations = [...(block ?? "").matchAll(/--([a-z-]+):\s*([^;]+);/g)];
  return new Map(declarations.map(([, name = "", value = ""]) => [name, value]));
}

function luminance(hex: string): number {
  const [r = 0, g = 0, b = 0] = [1, 3, 5].map((start) => {
    const part = Number.parseInt(hex.slice(start, start + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function contrast(a: string, b: string): number {
  const [low = 0, high = 0] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (high + 0.05) / (low + 0.05);
}

describe.each(["light", "dark"] as const)("%s tokens", (theme) => {
  it("are the same in the style sheet and for canvases", () => {
    const inSheet = declared(theme);
    for (const [name, value] of Object.entries(tokens(theme))) {
      expect(inSheet.get(name), name).toBe(value);
    }
  });

  it("can be read: text has 4.5:1 on both grounds", () => {
    const { bg, surface, text, secondary, link, bad, warn, ok } = tokens(theme);
    const dim = declared(theme).get("dim") ?? "";
    for (const colour of [text, secondary, dim, link, bad, warn, ok]) {
      expect(contrast(colour, bg), `${colour} on ${bg}`).toBeGreaterThanOrEqual(4.5);
      expect(contrast(colour, surface)).toBeGreaterThanOrEqual(4.5);
    }
  });

  it("can be read in the selected run and row too", () => {
    const { text, secondary, link, bad, warn, ok } = tokens(theme);
    const selected = declared(theme).get("selected") ?? "";
    for (const colour of [text, secondary, link, bad, warn, ok]) {
      const ratio = contrast(colour, selected);
      expect(ratio, `${colour} on ${selected}`).toBeGreaterThanOrEqual(4.5);
    }
  });
});
