/** The heatmap's colours in both themes, as the raster core takes them. */

import type { Theme } from "../../base/tokens";
import { tokens } from "../../base/tokens";
import type { PaletteName } from "../../render/palette";
import { buildLut, FLAGGED_SHARE, pixelOf } from "../../render/palette";
import type { CellColours } from "../../render/raster/grid";
import type { SceneColours } from "../../render/raster/scene";
import type { HeatmapResponse } from "../../api/types.gen";
import type { Domain } from "./layout";

export function paletteOf(domain: Domain, theme: Theme): PaletteName {
  if (!domain.diverging) return "viridis";
  return theme === "dark" ? "diverging_dark" : "diverging_light";
}

interface HeatColours {
  /** The last 3 % of the capacity. Not part of the palette, far from its bright end. */
  readonly flag: string;
  readonly absent: string;
  readonly absentAccent: string;
}

export function heatColours(theme: Theme): HeatColours {
  return theme === "dark"
    ? { flag: "#ff2d55", absent: "#3a3a3a", absentAccent: "#707070" }
    : { flag: "#e0003c", absent: "#f3f3f3", absentAccent: "#b8b8b8" };
}

/** Cells of an answer in the colours of a domain that all answers share. */
function cellColours(
  answer: HeatmapResponse,
  domain: Domain,
  theme: Theme,
): CellColours {
  const { flag, absent, absentAccent } = heatColours(theme);
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
  return { lut, absentAccent: pixelOf(absentAccent) };
}

/** Every answer is quantised to its own range, so each has its own table. */
export function sceneColours(
  answers: ReadonlyMap<string, HeatmapResponse>,
  domain: Domain,
  theme: Theme,
): SceneColours {
  return {
    background: pixelOf(tokens(theme).bg),
    cells: new Map(
      [...answers].map(([layer, answer]) => [
        layer,
        cellColours(answer, domain, theme),
      ]),
    ),
  };
}
