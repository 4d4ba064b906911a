/** What the colours mean, from the lowest to the capacity. */

import type { Unit } from "../../api/types.gen";
import type { ByteUnit } from "../../base/bytes";
import { formatQuantity } from "../../model/words/quantity";
import { FLAGGED_SHARE, hexOf, paletteAt } from "../../render/palette";
import type { Domain } from "./layout";
import { heatColours, paletteOf } from "./colours";
import type { Theme } from "../../base/tokens";

const STOPS = 12;
const WIDTH_PX = 180;

export interface ColourBarProps {
  readonly domain: Domain;
  readonly unit: Unit;
  readonly byteUnit: ByteUnit;
  readonly theme: Theme;
}

export function ColourBar({ domain, unit, byteUnit, theme }: ColourBarProps) {
  const stops = Array.from({ length: STOPS + 1 }, (_, i) =>
    hexOf(paletteAt(paletteOf(domain, theme), i / STOPS)),
  );
  const { flag, absent, absentAccent } = heatColours(theme);
  const flagPx = domain.capacity ? Math.max(5, WIDTH_PX * FLAGGED_SHARE) : 0;
  const hatch = `repeating-linear-gradient(135deg, ${absentAccent} 0 1px, ${absent} 1px 6px)`;
  return (
    <div class="colour-bar">
      <span>
        {domain.diverging && "−"}
        {formatQuantity(domain.diverging ? -domain.low : domain.low, unit, byteUnit)}
      </span>
      <span
        class="colour-bar-scale"
        style={{
          width: `${WIDTH_PX - flagPx}px`,
          background: `linear-gradient(to right, ${stops.join(", ")})`,
        }}
      />
      {domain.capacity && (
        <span
          class="colour-bar-flag"
          style={{ width: `${flagPx}px`, background: flag }}
          title="the last 3 % of the capacity"
        />
      )}
      <span>
        {domain.diverging && "+"}
        {formatQuantity(domain.high, unit, byteUnit)}
        {domain.capacity && " capacity"}
      </span>
      <span class="colour-bar-absent" style={{ background: hatch }} />
      <span>not recorded</span>
    </div>
  );
}
