/**
 * What is live at the moment looked at. While the pointer moves over the picture it is
 * read from what came with the tile; where it rests, and where nothing points, the server
 * says it exactly.
 */

import { computed, signal, type ReadonlySignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import type { Client, Query } from "../../api/client";
import type { AllocationLiveResponse } from "../../api/types.gen";
import { useOnce } from "../../api/use_once";
import type { BlockController } from "../../widgets/block_stack/controller";
import type { BlockHover } from "../../widgets/block_stack/inputs";
import { heldExactly, type Held } from "./held";
import { useRest } from "./rest";
import type { Tiles } from "../use_tiles";

const EXACT = new WeakMap<AllocationLiveResponse, Held>();

export function exactly(live: AllocationLiveResponse): Held {
  let held = EXACT.get(live);
  if (held === undefined) {
    held = heldExactly(live);
    EXACT.set(live, held);
  }
  return held;
}

/** What the tile under the pointer says; null until its holders came. */
function followed({ loader, tiles }: Tiles, hover: BlockHover): Held | null {
  const { moment } = hover;
  const own = loader.holders(hover.tile);
  const whole = tiles[0];
  if (own === null && whole === undefined) return null;
  const holders = own ?? (whole === undefined ? null : loader.holders(whole));
  if (holders === null) return null;
  const column = own === null ? (whole?.columnAt(hover.x) ?? -1) : hover.column;
  if (column < 0) return null;
  return {
    moment: own === null ? (holders.moment[column] ?? moment) : moment,
    stack: holders.stack,
    bytes: holders.at(column),
    blocks: null,
    weights: holders.highest(),
  };
}

export interface HeldNow {
  readonly held: ReadonlySignal<Held | null>;
  /** The exact answer shown beside it: of the pointer's rest, else of the anchor. */
  readonly live: AllocationLiveResponse | null;
  /** Of the anchor alone. */
  readonly anchored: AllocationLiveResponse | null;
  readonly failed: boolean;
}

/** `anchor` is the moment shown while nothing points. */
export function useHeld(
  client: Client,
  place: Query,
  anchor: number,
  controller: BlockController | null,
  tiles: Tiles,
): HeldNow {
  const rest = useRest(controller)?.moment ?? null;
  // The picture goes first: both would share one processor.
  const drawn = tiles.tiles.length > 0;
  const anchorQuery = drawn ? { ...place, moment: anchor } : null;
  const anchorLive = useOnce(client, "allocation_live", anchorQuery);
  const restQuery =
    rest === null || rest === anchor ? null : { ...place, moment: rest };
  const restLive = useOnce(client, "allocation_live", restQuery);
  const anchored = anchorLive.data;
  const rested = restLive.stale ? null : restLive.data;
  const answers = useMemo(
    () => signal<readonly (AllocationLiveResponse | null)[]>([]),
    [],
  );
  useEffect(() => {
    answers.value = [anchored, rested];
  }, [answers, anchored, rested]);
  const held = useMemo(
    () =>
      computed<Held | null>(() => {
        const known = answers.value;
        // Holders arrive later than the tile they belong to.
        if (tiles.version.value < 0) return null;
        const hover = controller?.hovered.value ?? null;
        if (hover === null) {
          const [own] = known;
          return own === null || own === undefined ? null : exactly(own);
        }
        const found = known.find((one) => one?.moment === hover.moment);
        if (found !== null && found !== undefined) return exactly(found);
        return followed(tiles, hover);
      }),
    [controller, tiles.loader, tiles.tiles, tiles.version, answers],
  );
  return {
    held,
    live: rest === null || rest === anchor ? anchored : (rested ?? anchored),
    anchored,
    failed: anchorLive.error !== null,
  };
}
