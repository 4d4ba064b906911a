import type { AllocationLiveResponse } from "../../../../api/types.gen";
import {
  counted,
  formatBytes,
  formatBytesExact,
  formatInteger,
  formatShare,
} from "../../../../base/bytes";
import type { Theme } from "../../../../base/tokens";
import { atMoment } from "../../../../widgets/block_stack/axis";
import { groupLabel } from "../../../../widgets/block_stack/paint/colours";
import { momentName } from "../../history/moment";
import type { Blocks } from "../use_blocks";

interface Part {
  readonly key: string;
  readonly label: string;
  /** Beside the label. */
  readonly note?: string;
  /** null: not recorded. */
  readonly bytes: number | null;
  readonly width: number;
  readonly caveat: string;
  readonly background: string;
}

const stripes =
  (angle: number) =>
  (grey: string, pale: string): string =>
    `repeating-linear-gradient(${angle}deg, ${grey} 0 2px, ${pale} 2px 6px)`;

/** Patterns distinguish these from categories. */
const ENTRIES: Readonly<
  Record<string, readonly [string, fill?: (grey: string, pale: string) => string]>
> = {
  live: ["Live, requested"],
  rounding: ["Rounding", (grey) => grey],
  pending_free: ["Waiting to be freed", stripes(90)],
  inactive_split: ["Free parts of segments in use", stripes(135)],
  free_segments: ["Free segments", (_, pale) => pale],
  private_pools: ["Private pools, free", stripes(45)],
  non_torch: ["Outside torch", () => "var(--secondary)"],
  free: ["Free"],
};

export function ledgerParts(
  live: Pick<AllocationLiveResponse, "ledger" | "categories">,
  capacityBytes: number | null,
  theme: Theme,
  colours: readonly string[],
): readonly Part[] {
  const { ledger } = live;
  // In the ledger, what waits to be freed is a part of its own.
  const shown = live.categories.map(({ bytes, pendingBytes }) =>
    ledger === null ? bytes : bytes - pendingBytes,
  );
  const inCategories = shown.reduce((sum, bytes) => sum + bytes, 0);
  const alive =
    ledger?.entries.find(({ key }) => key === "live")?.bytes ?? inCategories;
  const perByte = inCategories > 0 ? alive / inCategories : 0;
  const parts = live.categories
    .map((group, i): Part => {
      const { key, numBlocks, pendingBytes } = group;
      const bytes = shown[i] ?? 0;
      const blocks = counted(numBlocks, "block");
      const caveat =
        pendingBytes > 0
          ? `${blocks} with ${formatBytesExact(pendingBytes)} that wait to be freed`
          : blocks;
      const background = colours[i] ?? "transparent";
      const width = bytes * perByte;
      const label = groupLabel(group);
      // Of a line its other blocks are in their categories.
      const note = group.stack === null ? "" : "no category";
      return { key, label, note, bytes, width, caveat, background };
    })
    // Largest first: bar and list are read from the start.
    .filter(({ bytes }) => bytes !== 0)
    .sort((a, b) => b.width - a.width);
  if (ledger === null) return parts;
  const { deviceUsedBytes } = ledger;
  const left = (capacityBytes ?? 0) - (deviceUsedBytes ?? ledger.reservedBytes);
  const caveat = deviceUsedBytes === null ? "or used outside torch" : "";
  const free = left > 0 ? [{ key: "free", bytes: left, caveat }] : [];
  const entries = ledger.entries.filter(({ key }) => key !== "live");
  const [grey, pale] =
    theme === "dark" ? (["#8d9299", "#4c4f54"] as const) : ["#9aa0a8", "#e4e6ea"];
  const others = [...entries, ...free].map((entry) => {
    const [label = entry.key, fill] = ENTRIES[entry.key] ?? [];
    const background = fill?.(grey, pale) ?? "transparent";
    return { ...entry, label, width: Math.max(0, entry.bytes ?? 0), background };
  });
  return [...parts, ...others];
}

export function LedgerBar(props: {
  readonly of: Blocks;
  readonly live: AllocationLiveResponse;
}) {
  const { live } = props;
  const { device, view, colours, culprits } = props.of;
  const { theme, byteUnit } = view;
  const { capacityBytes } = device;
  const parts = ledgerParts(live, capacityBytes, theme, colours.palette);
  const total = parts.reduce((sum, { width }) => sum + width, 0);
  const title = ({ label: name, note = "", bytes, caveat }: Part): string => {
    const label = note === "" ? name : `${name}, ${note}`;
    if (bytes === null) return `${label}: not recorded. ${caveat}`;
    const text = `${label}: ${formatBytesExact(bytes)}, ${formatShare(bytes, total)}`;
    return caveat === "" ? text : `${text}; ${caveat}`;
  };
  const facts = [
    atMoment(live.moment),
    momentName(device, live.moment),
    live.step === null ? "" : `step ${formatInteger(live.step)}`,
    live.phase,
  ];
  return (
    <section class="ledger" aria-label="Where the memory went">
      <h2>Where the memory went</h2>
      <p class="quiet">
        {facts.filter((word) => word !== "").join(", ")} ·{" "}
        {formatBytes(live.reservedBytes, byteUnit)} reserved
        {capacityBytes !== null && ` of ${formatBytes(capacityBytes, byteUnit)}`}
        {live.pinnedHostBytes !== null &&
          ` · beside it ${formatBytes(live.pinnedHostBytes, byteUnit)} of host memory pinned`}
      </p>
      <div class="ledger-bar" role="img" aria-label={parts.map(title).join("; ")}>
        {parts
          .filter(({ width }) => width > 0)
          .map((part) => (
            <span
              key={part.key}
              class={part.key === "free" ? "is-free" : ""}
              style={{
                flexGrow: part.width / Math.max(total, 1),
                background: part.background,
              }}
              title={title(part)}
            />
          ))}
      </div>
      <ul class="ledger-parts">
        {parts
          .filter(({ bytes }) => bytes !== 0)
          .map((part) => (
            <li
              key={part.key}
              title={title(part)}
              class={culprits.has(part.label) ? "is-culprit" : ""}
            >
              <span
                class={part.key === "free" ? "swatch is-free" : "swatch"}
                style={{ background: part.background }}
              />
              <span class="cut">
                {part.label} <span class="quiet small">{part.note}</span>
              </span>
              {part.bytes === null ? (
                <span class="quiet">not recorded</span>
              ) : (
                <b>{formatBytes(part.bytes, byteUnit)}</b>
              )}
            </li>
          ))}
      </ul>
    </section>
  );
}
