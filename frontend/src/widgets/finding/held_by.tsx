/** What held the memory: the lines that hold most, as bars of what was live. */

import type { HeldBy as HeldByLine, MemoryState } from "../../api/types.gen";
import {
  formatBytes,
  formatBytesExact,
  formatInteger,
  formatShare,
  type ByteUnit,
} from "../../base/bytes";
import type { Theme } from "../../base/tokens";
import { categoryColour, groupNamed } from "../../model/category";

/** Lines that are shown; the others are in the report and in Blocks. */
const MOST = 6;
/** Smaller shares are no bar any more. */
const LEAST_SHARE = 0.005;

export function HeldBy(props: {
  readonly state: MemoryState;
  /** The line that is blamed: red, as everywhere. */
  readonly line: string;
  readonly theme: Theme;
  readonly byteUnit: ByteUnit;
  /** Shows the rank's modules; null where none can have been tracked. */
  readonly showModules: (() => void) | null;
}) {
  const { state, line: blamed, theme, byteUnit } = props;
  const shown = state.heldBy.filter(({ share }) => share >= LEAST_SHARE).slice(0, MOST);
  if (shown.length === 0) return null;
  return (
    <div class="finding-part">
      <h3 title={state.heldSentence}>
        What held the memory
        {props.showModules !== null && (
          <button type="button" onClick={props.showModules}>
            Modules
          </button>
        )}
      </h3>
      <ol class="finding-held">
        {shown.map((line, at) => {
          const isBlamed = blamed !== "" && line.label === blamed;
          const colour = categoryColour(theme, groupNamed(line.category));
          return (
            <li key={`${line.label} ${at}`} title={note(line)}>
              <span
                class={isBlamed ? "finding-line culprit" : "finding-line"}
                title={line.label}
              >
                {line.label === "" ? "no stack recorded" : line.label}
              </span>
              <span class="finding-bar">
                <span
                  style={{
                    width: `${(100 * line.share).toFixed(2)}%`,
                    background: isBlamed ? "var(--bad)" : colour,
                  }}
                />
              </span>
              <span class="finding-size" title={formatBytesExact(line.bytes)}>
                {formatBytes(line.bytes, byteUnit)}
              </span>
              <small class="quiet">{isBlamed ? "cause" : line.category}</small>
            </li>
          );
        })}
      </ol>
    </div>
  );
}

function note(line: HeldByLine): string {
  const blocks = `${formatInteger(line.numBlocks)} ${line.numBlocks === 1 ? "block" : "blocks"}`;
  const category = line.category === null ? [] : [line.category];
  return [formatShare(line.share, 1), ...category, blocks].join(" · ");
}
