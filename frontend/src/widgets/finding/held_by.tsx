import type { HeldBy as HeldByLine, MemoryState } from "../../api/types.gen";
import {
  counted,
  formatBytes,
  formatBytesExact,
  formatShare,
  type ByteUnit,
} from "../../base/bytes";
import type { Theme } from "../../base/tokens";
import { categoryColour, groupNamed, siteColour } from "../../model/category";
import { BarRows, type BarRow } from "../bar_rows/bar_rows";

/** The others are in the report and in Blocks. */
const MOST = 6;
const LEAST_SHARE = 0.005;

export function HeldBy(props: {
  readonly state: MemoryState;
  readonly line: string;
  readonly theme: Theme;
  readonly byteUnit: ByteUnit;
  /** null: no modules were tracked. */
  readonly showModules: (() => void) | null;
}) {
  const { state, theme, byteUnit, showModules } = props;
  const shown = state.heldBy.filter(({ share }) => share >= LEAST_SHARE).slice(0, MOST);
  if (shown.length === 0) return null;
  // As in Blocks, the top line without a category has its own colour.
  const site = shown.find(({ category }) => groupNamed(category) === "unknown");
  return (
    <div class="finding-held">
      <h3 title={state.heldSentence}>
        Top allocation sites{" "}
        {showModules !== null && (
          <button type="button" class="text-button" onClick={showModules}>
            Modules
          </button>
        )}
      </h3>
      <BarRows
        label="Top allocation sites"
        rows={shown.map((line, index): BarRow => {
          const { label, bytes, share, category, isPending } = line;
          const isBlamed = props.line !== "" && label === props.line;
          const background =
            isBlamed || line === site
              ? siteColour(theme, isBlamed)
              : categoryColour(theme, groupNamed(category));
          const kind = isBlamed
            ? "cause"
            : category === "unknown"
              ? ""
              : (category ?? "");
          const word = isPending ? "waits to be freed" : kind;
          return {
            key: `${label} ${index}`,
            label: (
              <code class={isBlamed ? "culprit" : undefined} title={label}>
                {label === "" ? "no stack recorded" : label}
              </code>
            ),
            title: note(line),
            share,
            background,
            value: formatBytes(bytes, byteUnit),
            exact: formatBytesExact(bytes),
            note: word,
          };
        })}
      />
    </div>
  );
}

function note(line: HeldByLine): string {
  const blocks = counted(line.numBlocks, "block");
  const category = line.category === null ? [] : [line.category];
  const waits = line.isPending ? ["freed, waits for another stream"] : [];
  return [formatShare(line.share, 1), ...category, ...waits, blocks].join(" · ");
}
