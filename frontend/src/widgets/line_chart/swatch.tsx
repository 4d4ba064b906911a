/** A short piece of a line, as legend and tooltip show it. */

import type { Theme } from "../../base/tokens";
import { tokens } from "../../base/tokens";
import { dashOf, lineColour } from "./palette";

export interface SwatchProps {
  readonly theme: Theme;
  /** Index into the line palette; null for the band. */
  readonly colour: number | null;
  readonly dash: "solid" | "dashed" | "dotted";
}

export function Swatch({ theme, colour, dash }: SwatchProps) {
  if (colour === null) {
    const link = tokens(theme).link;
    return (
      <svg class="chart-swatch" width="18" height="10" aria-hidden="true">
        <rect width="18" height="10" fill={link} opacity="0.3" />
        <path d="M0 5 H18" stroke={link} stroke-width="2" />
      </svg>
    );
  }
  return (
    <svg class="chart-swatch" width="18" height="10" aria-hidden="true">
      <path
        d="M0 5 H18"
        stroke={lineColour(theme, colour)}
        stroke-width="2.5"
        stroke-dasharray={dashOf(colour, dash).join(" ")}
      />
    </svg>
  );
}
