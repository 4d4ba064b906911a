/**
 * Every segment of the allocator with its blocks, at one moment: a row each, scrolled
 * through virtually, drawn in a worker. The pointer reads every block.
 */

import { useSignal } from "@preact/signals";
import { useEffect, useId, useMemo, useRef, useState } from "preact/hooks";
import type { HistoryFacts, SegmentsResponse } from "../../api/types.gen";
import {
  formatBytes,
  formatBytesExact,
  formatInteger,
  type ByteUnit,
} from "../../base/bytes";
import { tokens, type Theme } from "../../base/tokens";
import type { CallStacks } from "../../model/stacks/call_stacks";
import { pixelOf } from "../../render/palette";
import { RasterSurface } from "../../render/surface";
import { useWidth } from "../line_chart/use_size";
import { devicePx, fitted, pixelRatio } from "../plot/canvas";
import { SegmentCard } from "./card";
import type { SegmentFill } from "./fills";
import { headWidth, headWords } from "./head";
import { blocksOf, rowOfBlock, rowsBetween, segmentLayout } from "./layout";
import type { SegmentScale } from "./layout";
import { paintOverlay } from "./overlay";
import { firstSegmentId, segmentQuads } from "./quads";
import "./segment_map.css";
import { blockWords, openedText, segmentKind } from "./words";

const LAYER = "blocks";

export interface SegmentMapProps {
  readonly label: string;
  readonly answer: SegmentsResponse;
  readonly facts: Pick<HistoryFacts, "pools" | "streams">;
  readonly stacks: CallStacks | null;
  readonly scale: SegmentScale;
  readonly fill: SegmentFill;
  /** The chosen block's life; null: none. */
  readonly life: number | null;
  /** Address of the chosen segment; null: none. */
  readonly segment: number | null;
  /** What keeps a segment, in words, by its address. */
  readonly pinned: ReadonlyMap<number, string>;
  /** Row of `SegmentBlocks`. */
  readonly onBlock: (block: number) => void;
  /** Row of `SegmentRows`. */
  readonly onSegment: (row: number) => void;
  readonly theme: Theme;
  readonly byteUnit: ByteUnit;
  readonly heightPx: number;
  /** Told how to read the picture, for exports; null when it is gone. */
  readonly onReady: (shown: ShownMap | null) => void;
}

/** What is in sight, for a picture of it. */
export interface ShownMap {
  readonly cells: HTMLCanvasElement;
  readonly widthPx: number;
  readonly heightPx: number;
  /** Room for the words of a segment, left of its blocks. */
  readonly headPx: number;
  /** First row in sight and the one after the last, with where the first begins. */
  readonly rows: readonly [number, number];
  readonly scrollPx: number;
}

/** What the pointer is on. */
export interface MapHover {
  readonly x: number;
  readonly y: number;
  readonly row: number;
  /** -1: the segment's blocks are not listed. */
  readonly block: number;
}

export function SegmentMap(props: SegmentMapProps) {
  const { answer, facts, theme, fill, scale, heightPx, stacks, byteUnit, life } = props;
  const box = useRef<HTMLDivElement>(null);
  const scroller = useRef<HTMLDivElement>(null);
  const cells = useRef<HTMLCanvasElement>(null);
  const over = useRef<HTMLCanvasElement>(null);
  const surface = useRef<RasterSurface | null>(null);
  const [scrolled, setScrolled] = useState(0);
  const [failure, setFailure] = useState<string | null>(null);
  const hover = useSignal<MapHover | null>(null);
  const spoken = useSignal("");
  const helpId = useId();
  const fullPx = useWidth(box);
  const headPx = useMemo(
    () => headWidth(answer, facts, byteUnit),
    [answer, facts, byteUnit],
  );
  const widthPx = Math.max(0, fullPx - headPx - 16);
  const layout = useMemo(
    () => segmentLayout(answer.segments.totalBytes, scale),
    [answer, scale],
  );
  const totalPx = layout.top.at(-1) ?? 0;
  const scrollPx = Math.max(0, Math.min(scrolled, totalPx - heightPx));
  const quads = useMemo(
    () => segmentQuads(answer, layout, fill, theme),
    [answer, layout, fill, theme],
  );
  const selected = useMemo(
    () => (life === null ? -1 : answer.blocks.life.indexOf(life)),
    [answer, life],
  );

  useEffect(() => {
    const element = cells.current;
    if (element === null) return undefined;
    const made = new RasterSurface(element, {
      onPaint: (frame) => {
        setFailure(null);
        element.dataset["drawMs"] = frame.drawMs.toFixed(1);
      },
      onFailure: setFailure,
    });
    surface.current = made;
    return () => {
      made.dispose();
      surface.current = null;
    };
  }, []);
  useEffect(() => {
    const bg = pixelOf(tokens(theme).bg);
    surface.current?.setColours({ background: bg, cells: new Map(), accent: bg });
    surface.current?.setLayer(LAYER, 1, { kind: "quads", quads });
    surface.current?.refresh();
  }, [quads, theme]);
  useEffect(() => {
    if (widthPx < 2) return;
    surface.current?.show(
      { x0: 0, x1: 1, y0: scrollPx, y1: scrollPx + heightPx },
      devicePx({ widthPx, heightPx }),
    );
  }, [widthPx, heightPx, scrollPx, pixelRatio()]);

  const paint = useRef((): void => undefined);
  paint.current = (): void => {
    const context = widthPx < 2 ? null : fitted(over.current, widthPx, heightPx);
    if (context === null) return;
    const hovered = hover.peek()?.block ?? -1;
    const lit = hovered >= 0 ? hovered : selected;
    paintOverlay(context, {
      answer,
      layout,
      theme,
      widthPx,
      heightPx,
      scrollPx,
      hovered,
      selected,
      stack: lit < 0 ? null : (answer.blocks.stack[lit] ?? null),
      pinned: props.pinned,
    });
  };
  useEffect(() => paint.current());
  useEffect(
    () => hover.subscribe(() => window.requestAnimationFrame(paint.current)),
    [],
  );
  useEffect(() => {
    // What was pointed at may be gone at another moment.
    hover.value = null;
  }, [answer, layout]);
  useEffect(() => {
    // A block that a link names, or that was found elsewhere, comes into sight.
    const row = rowOfBlock(answer, selected);
    if (row >= 0) reveal(row);
  }, [selected >= 0, life]);

  const [first, end] = rowsBetween(layout, scrollPx, scrollPx + heightPx);
  const told = useRef(props.onReady);
  told.current = props.onReady;
  useEffect(() => {
    const element = cells.current;
    if (element === null) return;
    const rows = [first, end] as const;
    told.current({ cells: element, widthPx, heightPx, headPx, rows, scrollPx });
  });
  useEffect(() => () => told.current(null), []);

  function reveal(row: number): void {
    const [top, bottom] = [layout.top[row] ?? 0, layout.top[row + 1] ?? 0];
    if (top >= scrollPx && bottom <= scrollPx + heightPx) return;
    scroller.current?.scrollTo({ top: Math.max(0, (top + bottom - heightPx) / 2) });
  }

  function hoverAt(event: MouseEvent): MapHover | null {
    const rect = cells.current?.getBoundingClientRect();
    if (rect === undefined) return null;
    const x = event.clientX - rect.left;
    const y = event.clientY - rect.top;
    if (x < 0 || y < 0 || x >= widthPx || y >= heightPx) return null;
    const ratio = pixelRatio();
    const pick = surface.current?.pick(x * ratio, y * ratio) ?? null;
    if (pick?.kind !== "quad") return null;
    const unlisted = pick.id - firstSegmentId(answer);
    const block = unlisted >= 0 ? -1 : pick.id;
    const row = unlisted >= 0 ? unlisted : rowOfBlock(answer, block);
    if (row < 0 || row >= answer.segments.address.length) return null;
    return { x: x + headPx, y, row, block };
  }

  function onKeyDown(event: KeyboardEvent): void {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const by = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    const at = hover.peek()?.block ?? selected;
    if (by !== 0) {
      const next = steppedBlock(answer, at, by, event.shiftKey);
      if (next >= 0) pointAt(next);
    } else if (event.key === "Enter" && at >= 0) props.onBlock(at);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  function pointAt(block: number): void {
    const row = rowOfBlock(answer, block);
    reveal(row);
    const y = (layout.top[row] ?? 0) - scrollPx + 30;
    hover.value = { x: headPx, y, row, block };
    spoken.value = blockWords(answer, block, stacks, byteUnit);
  }

  const summary = `${props.label}: ${formatInteger(answer.numSegments)} segments, ${formatBytes(answer.reservedBytes, byteUnit)} reserved, ${formatBytes(answer.allocatedBytes, byteUnit)} of it allocated.`;
  return (
    <div ref={box} class="segment-map">
      <div
        ref={scroller}
        class="segment-scroll"
        style={{ height: `${heightPx}px` }}
        tabIndex={0}
        role="application"
        aria-label={props.label}
        aria-describedby={helpId}
        onScroll={(event) => {
          hover.value = null;
          setScrolled(event.currentTarget.scrollTop);
        }}
        onKeyDown={onKeyDown}
        onPointerMove={(event) => {
          hover.value = hoverAt(event);
        }}
        onPointerLeave={() => {
          hover.value = null;
        }}
        onClick={(event) => {
          const at = hoverAt(event);
          if (at === null) return;
          if (at.block >= 0) props.onBlock(at.block);
          else props.onSegment(at.row);
        }}
      >
        <div class="segment-sight" style={{ height: `${heightPx}px` }}>
          <canvas
            ref={cells}
            style={{
              left: `${headPx}px`,
              width: `${widthPx}px`,
              height: `${heightPx}px`,
            }}
          />
          <canvas
            ref={over}
            style={{
              left: `${headPx}px`,
              width: `${widthPx}px`,
              height: `${heightPx}px`,
            }}
          />
          {Array.from({ length: Math.max(0, end - first) }, (_, i) => (
            <Head
              key={first + i}
              row={first + i}
              topPx={(layout.top[first + i] ?? 0) - scrollPx}
              headPx={headPx}
              {...props}
            />
          ))}
        </div>
        <div style={{ height: `${Math.max(0, totalPx - heightPx)}px` }} />
      </div>
      {failure !== null && (
        <p class="segment-failure" role="alert">
          The map could not be drawn: {failure}. Reload the page.
        </p>
      )}
      <SegmentCard hover={hover} {...props} widthPx={widthPx + headPx} />
      <p id={helpId} class="off-screen">
        {summary} Up and down go from block to block, with Shift from segment to
        segment, Enter opens the block.
      </p>
      <p class="off-screen" aria-live="polite">
        {spoken}
      </p>
    </div>
  );
}

/** The block before or after one; with `far` the first of the next segment. */
export function steppedBlock(
  answer: Pick<SegmentsResponse, "segments" | "blocks">,
  from: number,
  by: 1 | -1,
  far: boolean,
): number {
  const num = answer.blocks.state.length;
  if (num === 0) return -1;
  if (from < 0) return by > 0 ? 0 : num - 1;
  if (!far) return Math.min(Math.max(from + by, 0), num - 1);
  for (
    let row = rowOfBlock(answer, from) + by;
    row >= 0 && row < answer.segments.address.length;
    row += by
  ) {
    const [first, end] = blocksOf(answer, row);
    if (end > first) return first;
  }
  return from;
}

function Head(
  props: SegmentMapProps & {
    readonly row: number;
    readonly topPx: number;
    readonly headPx: number;
  },
) {
  const { row, topPx, headPx, answer, facts, byteUnit, segment, onSegment } = props;
  const { segments } = answer;
  const address = segments.address[row] ?? 0;
  const total = segments.totalBytes[row] ?? 0;
  const free = segments.freeBytes[row] ?? 0;
  const kind = segmentKind(answer, row, facts);
  const { size, address: at, stream, below } = headWords(answer, row, facts, byteUnit);
  const pins = props.pinned.get(address);
  return (
    <button
      type="button"
      tabIndex={-1}
      class={address === segment ? "segment-head is-chosen" : "segment-head"}
      style={{ top: `${topPx}px`, width: `${headPx - 12}px` }}
      title={[
        `${at}, ${formatBytesExact(total)}, ${kind}`,
        `${formatBytesExact(free)} free, the largest block ${formatBytesExact(segments.largestFreeBytes[row] ?? 0)}`,
        `Came with ${openedText(segments.opened[row] ?? -1)}`,
        pins ?? "",
      ]
        .filter((line) => line !== "")
        .join("\n")}
      onClick={(event) => {
        event.stopPropagation();
        onSegment(row);
      }}
    >
      <span>
        <b>{size}</b> <code>{at}</code>
        {stream !== "" && <span class="quiet"> · {stream}</span>}
      </span>
      <span class="quiet">{below}</span>
    </button>
  );
}
