/**
 * Colours were found by search: the smallest OKLab distance of any two, over normal
 * sight and three simulated colour blindnesses, is 11.8 in light and 9.3 in dark. Names
 * of one group share its hue and differ in lightness.
 */

import { CATEGORY_LABELS, type CategoryGroup } from "../api/types.gen";
import { tokens, type Theme } from "../base/tokens";
import { sentenceCase } from "./words/sentence_case";

const COLOURS: Readonly<Record<Theme, Readonly<Record<CategoryGroup, string>>>> = {
  light: {
    param: "#425ed4",
    optimizer: "#28bbf7",
    activation: "#065721",
    activation_grad: "#b03070",
    grad: "#df612b",
    comm: "#62008a",
    temp: "#e7ad51",
    unknown: "#8a8f98",
  },
  dark: {
    param: "#6b7bea",
    optimizer: "#6cc4fa",
    activation: "#b5f8bf",
    activation_grad: "#a82050",
    grad: "#e0662e",
    comm: "#a565b0",
    temp: "#e2b84f",
    unknown: "#9a9fa8",
  },
};

/** unknown for names of no group. */
export function groupNamed(name: string | null): CategoryGroup {
  const groups = Object.keys(COLOURS.light) as readonly CategoryGroup[];
  return groups.find((group) => group === name) ?? "unknown";
}

/** Colours of all groups, by their names in tables. */
export function groupColoursByName(theme: Theme): Readonly<Record<string, string>> {
  return COLOURS[theme];
}

/** Share of the group's colour that each further fine name keeps. */
const KEPT = [1, 0.66, 0.42, 0.28] as const;

function mixed(colour: string, other: string, share: number): string {
  const part = (hex: string, start: number): number =>
    Number.parseInt(hex.slice(start, start + 2), 16);
  const channels = [1, 3, 5].map((start) =>
    Math.round(part(colour, start) * share + part(other, start) * (1 - share)),
  );
  return `#${channels.map((value) => value.toString(16).padStart(2, "0")).join("")}`;
}

/** `variant`: index among the fine names of one group. */
export function categoryColour(
  theme: Theme,
  group: CategoryGroup,
  variant = 0,
): string {
  const kept = KEPT[Math.min(variant, KEPT.length - 1)] ?? 1;
  const colour = COLOURS[theme][group];
  return kept === 1 ? colour : mixed(colour, tokens(theme).bg, kept);
}

/** The line with the most uncategorised bytes; red where a finding names it. */
export function siteColour(theme: Theme, named: boolean): string {
  if (named) return theme === "dark" ? "#f2545b" : tokens(theme).bad;
  return theme === "dark" ? "#e38bdc" : "#c45cbb";
}

/** Each group's first one at full strength. */
export function categoryColours(
  theme: Theme,
  categories: readonly { readonly group: CategoryGroup }[],
): readonly string[] {
  const seen = new Map<CategoryGroup, number>();
  return categories.map(({ group }) => {
    const variant = seen.get(group) ?? 0;
    seen.set(group, variant + 1);
    return categoryColour(theme, group, variant);
  });
}

const LABELS = new Map<string, string>(Object.entries(CATEGORY_LABELS));

/** Falls back to the name, for categories added later. */
export function categoryLabel(name: string): string {
  return LABELS.get(name) ?? sentenceCase(name);
}

const DIVERGING: Readonly<Record<Theme, readonly [string, string]>> = {
  light: ["#1f6fc4", "#c8600a"],
  dark: ["#64b5f6", "#ffa95c"],
};

export function divergingColours(theme: Theme): readonly [string, string] {
  return DIVERGING[theme];
}
