/** Who held the memory: the lines that hold most, as bars of what was live. */

import type { OutOfMemory, VerdictHolder } from "../../api/types.gen";
import {
  formatBytes,
  formatBytesExact,
  formatInteger,
  formatShare,
  type ByteUnit,
} from "../../base/bytes";
import type { Theme } from "../../base/tokens";
import { categoryColour } from "../../model/category";

/** Lines that are shown; the others are in the report and the Allocations page. */
const MOST = 6;
/** Smaller shares are no bar any more. */
const LEAST_SHARE = 0.005;

export function VerdictHolders(props: {
  readonly one: OutOfMemory;
  readonly theme: Theme;
  readonly byteUnit: ByteUnit;
}) {
  const { one, theme, byteUnit } = props;
  const shown = one.holders.filter(({ share }) => share >= LEAST_SHARE).slice(0, MOST);
  if (shown.length === 0) return null;
  return (
    <div class="oom-part">
      <h3>Who held it</h3>
      {one.heldSentence !== "" && <p class="quiet">{one.heldSentence}</p>}
      <ol class="oom-holders">
        {shown.map((holder) => (
          <li key={`${holder.label} ${holder.stack ?? ""}`}>
            <span class="oom-line" title={holder.label}>
              {holder.label === "" ? "no stack recorded" : holder.label}
            </span>
            <span class="oom-size" title={formatBytesExact(holder.bytes)}>
              {formatBytes(holder.bytes, byteUnit)}
            </span>
            <span class="oom-bar">
              <span
                style={{
                  width: `${(100 * holder.share).toFixed(2)}%`,
                  background: categoryColour(theme, holder.category ?? "unknown"),
                }}
              />
            </span>
            <small class="quiet">{holderNote(holder)}</small>
          </li>
        ))}
      </ol>
    </div>
  );
}

function holderNote(holder: VerdictHolder): string {
  const blocks = `${formatInteger(holder.numBlocks)} ${holder.numBlocks === 1 ? "block" : "blocks"}`;
  const category = holder.category === null ? [] : [holder.category];
  return [formatShare(holder.share, 1), ...category, blocks].join(" · ");
}
