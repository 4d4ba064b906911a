/** The blocks of the map as rectangles for the raster. Pure. */

import type { SegmentsResponse } from "../../api/types.gen";
import type { Theme } from "../../base/tokens";
import { PATTERN, type Quads } from "../../render/raster";
import { blockFill, fills, STATE, type SegmentFill } from "./fills";
import { blocksOf, pieces, type Piece, type SegmentLayout } from "./layout";

/** Ids from here on are segments whose blocks were left out. */
export function firstSegmentId({ blocks }: Pick<SegmentsResponse, "blocks">): number {
  return blocks.state.length;
}

class Drafts {
  readonly #parts: (Piece & {
    readonly pixel: number;
    readonly id: number;
    readonly pattern: number;
  })[] = [];

  add(found: readonly Piece[], pixel: number, id: number, pattern: number): void {
    for (const piece of found) this.#parts.push({ ...piece, pixel, id, pattern });
  }

  quads(): Quads {
    const parts = this.#parts;
    return {
      x0: Float64Array.from(parts, ({ x0 }) => x0),
      x1: Float64Array.from(parts, ({ x1 }) => x1),
      y0: Float64Array.from(parts, ({ y0 }) => y0),
      y1: Float64Array.from(parts, ({ y1 }) => y1),
      colour: Uint32Array.from(parts, ({ pixel }) => pixel),
      id: Int32Array.from(parts, ({ id }) => id),
      pattern: Uint8Array.from(parts, ({ pattern }) => pattern),
    };
  }
}

/**
 * Free blocks first and live ones upon them: a live block is never narrower than a pixel,
 * and it is what keeps a segment from being given back.
 */
export function segmentQuads(
  answer: SegmentsResponse,
  layout: SegmentLayout,
  fill: SegmentFill,
  theme: Theme,
): Quads {
  const { segments, blocks } = answer;
  const known = fills(theme, answer.categories);
  const drafts = new Drafts();
  const num = segments.address.length;
  const draw = (wanted: (state: number) => boolean): void => {
    for (let row = 0; row < num; row += 1) {
      const isWhole = segments.numActive[row] === 0;
      const [first, end] = blocksOf(answer, row);
      for (let block = first; block < end; block += 1) {
        if (!wanted(blocks.state[block] ?? 0)) continue;
        const [offset, size] = [blocks.offset[block] ?? 0, blocks.size[block] ?? 0];
        const { pixel, pattern } = blockFill(known, answer, block, { fill, isWhole });
        drafts.add(pieces(layout, row, offset, size), pixel, block, pattern);
      }
    }
  };
  draw((state) => state === STATE.free);
  draw((state) => state !== STATE.free);
  const unlisted = fills(theme, []).pixel[4] ?? 0;
  for (let row = 0; row < num; row += 1) {
    const [first, end] = blocksOf(answer, row);
    if (end > first) continue;
    const whole = pieces(layout, row, 0, segments.totalBytes[row] ?? 0);
    drafts.add(whole, unlisted, firstSegmentId(answer) + row, PATTERN.dotted);
  }
  return drafts.quads();
}
