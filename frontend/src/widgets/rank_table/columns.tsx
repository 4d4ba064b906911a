import type { RankStrip } from "../../api/types.gen";
import { formatInteger, type ByteUnit } from "../../base/bytes";
import { formatExact, formatQuantity } from "../../model/words/quantity";
import { Icon } from "../icon/icon";
import type { TableColumn } from "../../model/table";
import { numberColumn, textColumn } from "../row_table/columns";
import type { RowCell, RowColumn } from "../row_table/row_table";

const HELP = {
  rank: "Click a row to open the rank",
  host: "The host of the rank",
  peak: "The highest value of all steps",
  step: "The step of its peak",
  share: "Peak ÷ device memory, host memory or memory limit",
  ooms: "Recorded out-of-memory errors",
  last: "The last recorded step",
  growth:
    "Theil–Sen slope over the steps: the median of the slopes between all pairs, after the warm-up (the first tenth, at least 5 steps). Single spikes do not move it; – where there are too few steps.",
  retries:
    "Times the allocator freed cached segments and tried again; each slows its step",
  lost: "The recording was not closed: the process was killed, or its host or disk failed",
} as const;

const FULL_SHARE = 0.97;

function countCell(value: number): RowCell {
  return { text: Number.isFinite(value) ? formatInteger(value) : "–" };
}

function shareCell(share: number): RowCell {
  if (!Number.isFinite(share)) return { text: "–" };
  const colour = share >= FULL_SHARE ? "var(--bad)" : "var(--link)";
  return { text: `${(share * 100).toFixed(1)} %`, bar: { share, colour } };
}

export function rankColumns(
  strip: RankStrip,
  pinned: ReadonlySet<number>,
  onPin: (rank: number) => void,
  byteUnit: ByteUnit,
): readonly RowColumn[] {
  const bytes =
    (unit: "bytes" | "bytes_per_step") =>
    (value: number): RowCell => ({
      text: formatQuantity(value, "bytes", byteUnit),
      title: formatExact(value, unit),
    });
  const shares = Float64Array.from(strip.peakBytes, (peak, i) => {
    const capacity = strip.capacityBytes[i] ?? NaN;
    return capacity > 0 ? peak / capacity : NaN;
  });
  const hosts = Array.from(strip.host, (index) => strip.hosts[index] ?? "");
  const lost = Array.from(strip.lost, (one) => (one === 1 ? "lost" : ""));
  const isPinned = Float64Array.from(strip.rank, (rank) => Number(pinned.has(rank)));
  const number = (
    ...[key, title, px, values, cell, hint, file]: readonly [
      ...words: [key: string, title: string, px: number],
      values: ArrayLike<number>,
      cell: (value: number) => RowCell,
      hint: string,
      file?: TableColumn,
    ]
  ): RowColumn => ({
    ...numberColumn(key, title, `minmax(${px}px, 1fr)`, values, cell, hint),
    ...(file && { exported: file }),
  });
  const { rank, peakBytes, peakStep, lastStep, numOoms, growthBytesPerStep } = strip;
  const { numAllocRetries: retries, capacityBytes } = strip;
  const peaks = { name: "peak (bytes)", values: peakBytes };
  const capacity = { name: "capacity (bytes)", values: capacityBytes };
  const growth = { name: "growth (bytes per step)", values: growthBytesPerStep };
  const perStep = bytes("bytes_per_step");
  return [
    {
      ...{ key: "pin", title: "Pin", hint: "Pinned ranks are always drawn" },
      ...{ numeric: false, width: "44px", values: isPinned, ascends: false },
      exported: null,
      cell: (row) => pinCell(rank[row] ?? -1, isPinned[row] === 1, onPin),
    },
    { ...number("rank", "Rank", 56, rank, linkCell, HELP.rank), ascends: true },
    textColumn("host", "Host", "minmax(90px, 2fr)", hosts, HELP.host),
    number("peak", "Peak", 84, peakBytes, bytes("bytes"), HELP.peak, peaks),
    number("at step", "At step", 72, peakStep, countCell, HELP.step),
    number("share", "Of capacity", 110, shares, shareCell, HELP.share, capacity),
    number(
      ...(["growth", "Growth/step", 104, growthBytesPerStep, perStep] as const),
      ...([HELP.growth, growth] as const),
    ),
    number("allocator retries", "Retries", 72, retries, countCell, HELP.retries),
    number("out of memory", "OOMs", 64, numOoms, oomCell, HELP.ooms),
    number("last step", "Last step", 84, lastStep, countCell, HELP.last),
    textColumn("lost", "Ended", "minmax(72px, 1fr)", lost, HELP.lost, (text) =>
      text === "" ? { text } : { text: "⚠ lost", title: HELP.lost, tone: "bad" },
    ),
  ];
}

function linkCell(rank: number): RowCell {
  return { text: String(rank), tone: "link" };
}

function oomCell(num: number): RowCell {
  if (!(num > 0)) return countCell(num);
  return { text: `✖ ${formatInteger(num)}`, title: "Out of memory", tone: "bad" };
}

function pinCell(
  rank: number,
  isPinned: boolean,
  onPin: (rank: number) => void,
): RowCell {
  const title = isPinned ? "Stop always drawing this rank" : "Always draw this rank";
  const button = (
    <button
      type="button"
      class="icon-button small rank-pin"
      aria-pressed={isPinned}
      aria-label={`${isPinned ? "Unpin" : "Pin"} rank ${rank}`}
      onClick={(event) => {
        event.stopPropagation();
        onPin(rank);
      }}
    >
      <Icon name="pin" sizePx={14} />
    </button>
  );
  return { text: "", title, content: button };
}
