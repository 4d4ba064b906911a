/** Where the pointer rests over the picture, and what the server then says of the block. */

import { useEffect, useState } from "preact/hooks";
import type { Client, Query } from "../../../api/client";
import type {
  AllocationBlockResponse,
  AllocationMoment,
  HistoryFacts,
} from "../../../api/types.gen";
import { useOnce } from "../../../api/use_once";
import { formatBytes, formatInteger, type ByteUnit } from "../../../base/bytes";
import type { CallStacks } from "../../../model/stacks/call_stacks";
import type { BlockController } from "../../../widgets/block_stack/controller";
import type { BlockHover } from "../../../widgets/block_stack/inputs";
import type { BlockDetail } from "../../../widgets/block_stack/types";

/** The pointer rests when it has not moved for this long. */
const REST_MS = 220;
/** Frames that a card has room for: the user's own, or what stands for them. */
const MOST_FRAMES = 5;

/** What the pointer rests on; null while it moves, or points at nothing. */
export function useRest(controller: BlockController | null): BlockHover | null {
  const [rest, setRest] = useState<BlockHover | null>(null);
  useEffect(() => {
    if (controller === null) return undefined;
    let timer = 0;
    const stop = controller.hovered.subscribe((hover) => {
      window.clearTimeout(timer);
      if (hover === null) {
        setRest(null);
        return;
      }
      timer = window.setTimeout(() => setRest(hover), REST_MS);
    });
    return () => {
      window.clearTimeout(timer);
      stop();
      setRest(null);
    };
  }, [controller]);
  return rest;
}

/** More about the block that the pointer rests on; null until it is known. */
export function useBlockDetail(
  client: Client,
  place: Query,
  controller: BlockController | null,
  facts: HistoryFacts,
  stacks: CallStacks | null,
  byteUnit: ByteUnit,
): BlockDetail | null {
  const rest = useRest(controller);
  const life = rest?.block?.life ?? -1;
  const query =
    rest === null || life < 0 ? null : { ...place, life, moment: rest.moment };
  const { data } = useOnce(client, "allocation_block", query);
  return data?.life === life ? blockDetail(data, facts, stacks, byteUnit) : null;
}

/** What the card of a block says beyond what the picture itself knows. */
export function blockDetail(
  block: AllocationBlockResponse,
  { streams, pools }: HistoryFacts,
  stacks: CallStacks | null,
  byteUnit: ByteUnit,
): BlockDetail {
  const rows: (readonly [string, string])[] = [];
  if (block.tensor !== "") rows.push(["tensor", block.tensor]);
  const rounding = block.blockBytes - block.sizeBytes;
  if (block.isRounded)
    rows.push(["size", "as rounded; what was asked for is not known"]);
  else if (rounding > 0) {
    const takes = formatBytes(block.blockBytes, byteUnit);
    rows.push(["takes", `${takes}, rounding adds ${formatBytes(rounding, byteUnit)}`]);
  } else rows.push(["takes", "no more: nothing was rounded"]);
  const where = stepWords(block.born);
  if (where !== "") rows.push(["born in", where]);
  if (block.stream !== null) rows.push(["stream", streams[block.stream] ?? ""]);
  if (block.pool !== null) rows.push(["pool", pools[block.pool] ?? ""]);
  if (block.stack !== null) {
    const live = formatInteger(block.numSiblings);
    const bytes = formatBytes(block.siblingBytes, byteUnit);
    const ever = formatInteger(block.numEver);
    rows.push(["same stack", `${live} others live, ${bytes}; ${ever} in all`]);
  }
  const path =
    block.stack === null ? null : (stacks?.path(block.stack, "python") ?? null);
  // Paths run from the caller on; what allocated stands first in a card.
  const frames = path === null ? [] : Array.from(path).reverse().slice(0, MOST_FRAMES);
  return {
    life: block.life,
    rows,
    frames: frames.map((frame) => stacks?.frameLabel(frame) ?? ""),
    numMore: Math.max(0, (path?.length ?? 0) - frames.length),
  };
}

function stepWords(at: AllocationMoment | null): string {
  if (at === null) return "";
  const step = at.step === null ? "" : `step ${formatInteger(at.step)}`;
  return [step, at.phase].filter((word) => word !== "").join(", ");
}
