import type { SegmentsResponse } from "../../../../api/types.gen";
import {
  counted,
  formatBytes,
  formatBytesExact,
  formatInteger,
} from "../../../../base/bytes";
import type { CallStacks } from "../../../../model/stacks/call_stacks";
import type { Table } from "../../../../model/table";
import { momentText } from "../../../../widgets/block_stack/axis";
import { groupLabel } from "../../../../widgets/block_stack/paint/colours";
import { spokenWords } from "../../../../widgets/plot/reading";
import type { Hit } from "./layout";
import { blockColour, STATE, type MapPicture } from "./picture";
import type { Reading } from "../../../../widgets/plot/reader";

/** Exact: addresses are below 2^53. */
export function addressText(address: number): string {
  return `0x${address.toString(16)}`;
}

/** By `SegmentBlocks.state`. */
const STATE_WORDS = ["free", "allocated", "pending free"] as const;

export function openedText(opened: number): string {
  return opened < 0 ? "before the first event" : momentText(opened);
}

/** What pins a segment; "": nothing. */
export function pinText({ pins }: SegmentsResponse, address: number): string {
  return pins.text[pins.address.indexOf(address)] ?? "";
}

/** What is under the pointer; null: it is gone at this moment. */
export function readingOf(
  { row, block }: Hit,
  picture: MapPicture,
  stacks: CallStacks | null,
): Reading | null {
  const { answer, layout, byteUnit } = picture;
  const { segments, blocks, kinds, categories } = answer;
  if (row >= segments.address.length || block >= blocks.state.length) return null;
  const bytes = (value = 0): string => formatBytes(value, byteUnit);
  const address = segments.address[row] ?? 0;
  const within = `${bytes(segments.freeBytes[row])} free, the largest block ${bytes(segments.largestFreeBytes[row])}; ${kinds[segments.kind[row] ?? -1] ?? ""}`;
  if (block < 0) {
    const folded = layout.numFolded[row] ?? 1;
    const size = formatBytesExact(segments.totalBytes[row] ?? 0);
    const many = `${counted(folded, "segment")} of ${size}`;
    return {
      title: folded > 1 ? many : `${addressText(address)}, ${size}`,
      notes: [pinText(answer, address) || within],
    };
  }
  const state = blocks.state[block] ?? 0;
  const isFree = state === STATE.free;
  const free = segments.numActive[row] === 0 ? "free segment" : "free, inactive split";
  const category = categories[blocks.category[block] ?? -1];
  const stack = blocks.stack[block] ?? -1;
  const line = stack < 0 ? undefined : stacks?.stackLabel(stack);
  const kind = isFree || category === undefined ? [] : [groupLabel(category)];
  return {
    title: `${bytes(blocks.size[block])} ${isFree ? free : (STATE_WORDS[state] ?? "")}`,
    swatch: blockColour(picture, block),
    notes: [
      ...kind.map((text) => ({ text, class: "quiet" }) as const),
      line ?? `in ${bytes(segments.totalBytes[row])}: ${within}`,
    ],
  };
}

/** For screen readers. */
export function blockWords(
  hit: Hit,
  picture: MapPicture,
  stacks: CallStacks | null,
): string {
  const { segments, blocks } = picture.answer;
  const address = (segments.address[hit.row] ?? 0) + (blocks.offset[hit.block] ?? 0);
  const reading = readingOf(hit, picture, stacks);
  const place = `segment ${formatInteger(hit.row + 1)} of ${formatInteger(segments.address.length)}`;
  return [reading && spokenWords(reading), `at ${addressText(address)}`, place].join(
    ", ",
  );
}

/** The address is empty for several segments in one line. */
export function headWords(
  { answer, layout, byteUnit }: Pick<MapPicture, "answer" | "layout" | "byteUnit">,
  row: number,
) {
  const { segments, kinds } = answer;
  const folded = layout.numFolded[row] ?? 1;
  const size = formatBytes(segments.totalBytes[row] ?? 0, byteUnit);
  const free = segments.freeBytes[row] ?? 0;
  const fill = free === 0 ? "full" : `${formatBytes(free, byteUnit)} free`;
  return {
    size: folded > 1 ? `${formatInteger(folded)} × ${size}` : size,
    address: folded > 1 ? "" : addressText(segments.address[row] ?? 0),
    below: `${fill} · ${kinds[segments.kind[row] ?? -1] ?? ""}`,
  };
}

export function segmentTable(
  answer: SegmentsResponse,
  stacks: CallStacks | null,
): Table {
  const { segments, kinds } = answer;
  const texts = (name: string, of: (row: number) => string) => ({
    name,
    values: Array.from(segments.address, (_, row) => of(row)),
  });
  return {
    numRows: segments.address.length,
    columns: [
      texts("address", (row) => addressText(segments.address[row] ?? 0)),
      { name: "total_bytes", values: segments.totalBytes },
      { name: "allocated_bytes", values: segments.allocatedBytes },
      { name: "pending_bytes", values: segments.pendingBytes },
      { name: "free_bytes", values: segments.freeBytes },
      { name: "largest_free_bytes", values: segments.largestFreeBytes },
      { name: "requested_bytes", values: segments.requestedBytes },
      { name: "num_active", values: segments.numActive },
      texts("kind", (row) => kinds[segments.kind[row] ?? -1] ?? ""),
      { name: "opened_event", values: segments.opened },
      texts("opened_by", (row) => {
        const stack = segments.stack[row] ?? -1;
        return stack < 0 ? "" : (stacks?.stackLabel(stack) ?? "");
      }),
      texts("pinned", (row) => pinText(answer, segments.address[row] ?? -1)),
    ],
  };
}
