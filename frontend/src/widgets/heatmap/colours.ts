import type { HeatmapResponse } from "../../api/types.gen";
import { tokens, type Theme } from "../../base/tokens";
import {
  buildLut,
  FLAGGED_SHARE,
  hexOf,
  paletteAt,
  pixelOf,
  type PaletteName,
} from "../../render/palette";
import type { SceneColours } from "../../render/raster/scene";
import type { Named } from "../plot/legend";
import type { Domain } from "./layout";

const SCALE_STEPS = 12;

function paletteOf({ diverging }: Domain, theme: Theme): PaletteName {
  if (!diverging) return "viridis";
  return theme === "dark" ? "diverging_dark" : "diverging_light";
}

/** `flag`: the top 3 % of the capacity; far from the palette's bright end. */
const COLOURS = {
  light: { flag: "#e0003c", absent: "#f3f3f3", accent: "#b8b8b8" },
  dark: { flag: "#ff2d55", absent: "#3a3a3a", accent: "#707070" },
} as const satisfies Record<Theme, unknown>;

/** Every answer is quantised to its own range, so each has its own table. */
export function sceneColours(
  answers: Readonly<Record<string, HeatmapResponse | null>>,
  domain: Domain,
  theme: Theme,
): SceneColours {
  const { flag, absent, accent } = COLOURS[theme];
  const cells = Object.entries(answers).flatMap(([layer, answer]) => {
    if (answer === null) return [];
    const lut = buildLut({
      palette: paletteOf(domain, theme),
      valueLow: answer.valueLow,
      valueHigh: answer.valueHigh,
      domainLow: domain.low,
      domainHigh: domain.high,
      flagFrom: domain.capacity ? domain.high * (1 - FLAGGED_SHARE) : null,
      flagColour: flag,
      absentColour: absent,
    });
    return [[layer, { lut, absentAccent: pixelOf(accent) }] as const];
  });
  return { background: pixelOf(tokens(theme).bg), cells: new Map(cells) };
}

export function scaleOf(
  { low, high, capacity, diverging }: Domain,
  theme: Theme,
  text: (value: number) => string,
): readonly Named[] {
  const { flag, absent, accent } = COLOURS[theme];
  const palette = paletteOf({ low, high, capacity, diverging }, theme);
  const scale = Array.from({ length: SCALE_STEPS + 1 }, (_, i) => {
    const share = i / SCALE_STEPS;
    const isFlagged = capacity && share > 1 - FLAGGED_SHARE;
    return isFlagged ? flag : hexOf(paletteAt(palette, share));
  });
  const label = diverging
    ? `−${text(-low)} to +${text(high)}`
    : `${text(low)} to ${text(high)}${capacity ? " capacity" : ""}`;
  const help = capacity
    ? "The top 3 % of the capacity have their own colour"
    : undefined;
  return [
    { label, colour: flag, scale, help },
    { label: "not recorded", colour: absent, hatch: accent },
  ];
}
