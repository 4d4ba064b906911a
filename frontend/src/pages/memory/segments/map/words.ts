import type { SegmentsResponse } from "../../../../api/types.gen";
import { formatBytes, formatInteger, type ByteUnit } from "../../../../base/bytes";
import type { CallStacks } from "../../../../model/stacks/call_stacks";
import type { Table } from "../../../../model/table";
import { momentText } from "../../../../widgets/block_stack/axis";
import { rowOfBlock, type Shown } from "./layout";
import type { MapPicture } from "./paint";

/** Exact: addresses are below 2^53. */
export function addressText(address: number): string {
  return `0x${address.toString(16)}`;
}

/** By `SegmentBlocks.state`. */
export const STATE_WORDS = ["free", "allocated", "pending free"] as const;

export function openedText(opened: number): string {
  return opened < 0 ? "before the first event" : momentText(opened);
}

/** What pins a segment; "": nothing. */
export function pinText({ pins }: SegmentsResponse, address: number): string {
  return pins.text[pins.address.indexOf(address)] ?? "";
}

export function blockWords(
  shown: Shown,
  block: number,
  stacks: CallStacks | null,
  byteUnit: ByteUnit,
): string {
  const { blocks, segments } = shown;
  const row = rowOfBlock(shown, block);
  const stack = blocks.stack[block] ?? -1;
  const address = (segments.address[row] ?? 0) + (blocks.offset[block] ?? 0);
  return [
    STATE_WORDS[blocks.state[block] ?? 0] ?? "",
    formatBytes(blocks.size[block] ?? NaN, byteUnit),
    stacks !== null && stack >= 0 ? stacks.stackLabel(stack) : "",
    `at ${addressText(address)}`,
    `segment ${formatInteger(row + 1)} of ${formatInteger(segments.address.length)}`,
  ]
    .filter((word) => word !== "")
    .join(", ");
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
