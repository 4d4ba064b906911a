/** Where the device's memory went at a moment: one bar, and every number of it. */

import { useMemo } from "preact/hooks";
import type { AllocationLiveResponse, LedgerEntry } from "../../../../api/types.gen";
import {
  formatBytes,
  formatBytesExact,
  formatInteger,
  formatShare,
  type ByteUnit,
} from "../../../../base/bytes";
import type { Theme } from "../../../../base/tokens";
import { categoryColour, categoryLabel, siteColour } from "../../../../model/category";
import type { CallStacks } from "../../../../model/stacks/call_stacks";
import { atMoment } from "../../../../widgets/block_stack/axis";
import type { BlockTile } from "../../../../widgets/block_stack/tile";
import type { Lines } from "../state/held";

interface Part {
  readonly key: string;
  readonly label: string;
  /** null: nothing recorded it. */
  readonly bytes: number | null;
  /** What it takes of the bar. */
  readonly width: number;
  readonly caveat: string;
  readonly background: string;
  /** A finding names it. */
  readonly isCulprit?: boolean;
}

/** What the site holds of a moment's unknown bytes; null: there is no site. */
interface SitePart {
  readonly label: string;
  readonly bytes: number;
  readonly numBlocks: number;
  readonly isCulprit: boolean;
}

export function sitePart(
  live: AllocationLiveResponse,
  stacks: CallStacks | null,
  { site, culprits }: Lines,
): SitePart | null {
  if (stacks === null || site === "") return null;
  let [bytes, numBlocks] = [0, 0];
  live.stack.forEach((stack, i) => {
    const category = live.categories[live.stackCategory[i] ?? -1]?.category;
    if (category !== "unknown" || stacks.stackLabel(stack) !== site) return;
    bytes += live.stackBytes[i] ?? 0;
    numBlocks += live.stackBlocks[i] ?? 0;
  });
  return { label: site, bytes, numBlocks, isCulprit: culprits.has(site) };
}

const ENTRY_LABEL: ReadonlyMap<string, string> = new Map([
  ["live", "Live, as asked for"],
  ["rounding", "Rounding"],
  ["pending_free", "Waiting to be freed"],
  ["inactive_split", "Free parts of segments in use"],
  ["free_segments", "Free segments"],
  ["private_pools", "Private pools, free"],
  ["non_torch", "Outside torch"],
  ["free", "Free"],
]);

/** Patterns, so that what is not a category cannot be taken for one. */
function fillOf(key: string, theme: Theme): string {
  const grey = theme === "dark" ? "#8d9299" : "#9aa0a8";
  const pale = theme === "dark" ? "#4c4f54" : "#e4e6ea";
  const stripes = (angle: number, wide: number): string =>
    `repeating-linear-gradient(${angle}deg, ${grey} 0 ${wide}px, ${pale} ${wide}px ${wide * 3}px)`;
  switch (key) {
    case "rounding":
      return grey;
    case "pending_free":
      return stripes(90, 2);
    case "inactive_split":
      return stripes(135, 2);
    case "free_segments":
      return pale;
    case "private_pools":
      return stripes(45, 2);
    case "non_torch":
      return theme === "dark" ? "#c9ccd1" : "#4a4f57";
    default:
      return "transparent";
  }
}

/** Bytes by key of the picture's groups, where these are categories; else null. */
export function exactGroups(
  live: AllocationLiveResponse | null,
  whole: BlockTile | null,
  stacks: CallStacks | null,
  lines: Lines,
): ReadonlyMap<string, number> | null {
  if (live === null || whole?.colour !== "category") return null;
  const site = whole.answer.groups.find(({ stack }) => stack !== null);
  const found = new Map<string, number>();
  for (const { category, bytes } of live.categories) found.set(category, bytes);
  if (site === undefined) return found;
  const part = sitePart(live, stacks, lines);
  if (part === null) return null;
  found.set(site.key, part.bytes);
  found.set("unknown", Math.max(0, (found.get("unknown") ?? 0) - part.bytes));
  return found;
}

/** The parts of the bar from left to right; live memory by category. */
export function ledgerParts(
  live: AllocationLiveResponse,
  capacityBytes: number | null,
  theme: Theme,
  site: SitePart | null = null,
): readonly Part[] {
  const { ledger } = live;
  const part = (key: string, bytes: number | null, caveat = ""): Part => ({
    key,
    label: ENTRY_LABEL.get(key) ?? key,
    bytes,
    width: Math.max(0, bytes ?? 0),
    caveat,
    background: fillOf(key, theme),
  });
  // Categories hold what waits to be freed too, which has a part of its own.
  const inCategories = live.categories.reduce((sum, { bytes }) => sum + bytes, 0);
  const alive =
    ledger?.entries.find(({ key }) => key === "live")?.bytes ?? inCategories;
  const perByte = inCategories > 0 ? alive / inCategories : 0;
  const blocks = (num: number): string =>
    `${formatInteger(num)} ${num === 1 ? "block" : "blocks"}`;
  const parts: Part[] = live.categories
    .map(({ category, bytes, numBlocks }) => {
      const isSplit = site !== null && category === "unknown";
      return {
        key: category,
        label: categoryLabel(category),
        bytes: isSplit ? Math.max(0, bytes - site.bytes) : bytes,
        caveat: blocks(isSplit ? numBlocks - site.numBlocks : numBlocks),
        background: categoryColour(theme, category),
      };
    })
    .filter(({ bytes }) => bytes > 0)
    .map((one) => ({ ...one, width: one.bytes * perByte }));
  if (site !== null && site.bytes > 0) {
    const { label, bytes, numBlocks, isCulprit } = site;
    parts.push({
      ...{ key: "site", label, bytes, width: bytes * perByte, isCulprit },
      caveat: blocks(numBlocks),
      background: siteColour(theme, isCulprit),
    });
  }
  // The largest first: a bar and its list are read from their beginning.
  parts.sort((a, b) => b.width - a.width);
  if (ledger === null) return parts;
  const entries = ledger.entries.filter(({ key }) => key !== "live");
  const found: Part[] = [
    ...parts,
    ...entries.map(({ key, bytes, caveat }: LedgerEntry) => part(key, bytes, caveat)),
  ];
  const { deviceUsedBytes } = ledger;
  const used = deviceUsedBytes ?? ledger.reservedBytes;
  if (capacityBytes !== null && capacityBytes > used) {
    const caveat = deviceUsedBytes === null ? "or used outside torch" : "";
    found.push(part("free", capacityBytes - used, caveat));
  }
  return found;
}

export function LedgerBar(props: {
  readonly live: AllocationLiveResponse;
  /** What its moment is besides its number. */
  readonly name: string;
  readonly capacityBytes: number | null;
  readonly stacks: CallStacks | null;
  readonly lines: Lines;
  readonly theme: Theme;
  readonly byteUnit: ByteUnit;
}) {
  const { live, name, capacityBytes, stacks, lines, theme, byteUnit } = props;
  const site = useMemo(() => sitePart(live, stacks, lines), [live, stacks, lines]);
  const parts = ledgerParts(live, capacityBytes, theme, site);
  const total = parts.reduce((sum, { width }) => sum + width, 0);
  const percent = (bytes: number): string => formatShare(bytes, total);
  const title = (one: Part): string =>
    one.bytes === null
      ? `${one.label}: not recorded. ${one.caveat}`
      : `${one.label}: ${formatBytesExact(one.bytes)}, ${percent(one.bytes)}${one.caveat === "" ? "" : `; ${one.caveat}`}`;
  return (
    <section class="ledger" aria-label="Where the memory went">
      <h2>Where the memory went</h2>
      <p class="quiet">
        {atMoment(live.moment)}
        {name !== "" && `, ${name}`}
        {live.step !== null && `, step ${formatInteger(live.step)}`}
        {live.phase !== "" && `, ${live.phase}`} ·{" "}
        {formatBytes(live.reservedBytes, byteUnit)} reserved
        {capacityBytes !== null && ` of ${formatBytes(capacityBytes, byteUnit)}`}
      </p>
      <div class="ledger-bar" role="img" aria-label={parts.map(title).join("; ")}>
        {parts.map((one) =>
          one.width <= 0 ? null : (
            <span
              key={one.key}
              class={one.key === "free" ? "is-free" : ""}
              style={{
                flexGrow: one.width / Math.max(total, 1),
                background: one.background,
              }}
              title={title(one)}
            />
          ),
        )}
      </div>
      <ul class="ledger-parts">
        {parts
          .filter(({ bytes }) => bytes !== 0)
          .map((one) => (
            <li
              key={one.key}
              title={title(one)}
              class={one.isCulprit === true ? "is-culprit" : ""}
            >
              <span
                class={one.key === "free" ? "block-swatch is-free" : "block-swatch"}
                style={{ background: one.background }}
              />
              <span class="ledger-name">{one.label}</span>
              <span class={one.bytes === null ? "quiet" : "ledger-value"}>
                {one.bytes === null ? "not recorded" : formatBytes(one.bytes, byteUnit)}
              </span>
            </li>
          ))}
      </ul>
    </section>
  );
}
