/**
 * Every segment of the allocator with its blocks, at one moment: a row each. The page
 * scrolls through them; only what is in sight is drawn.
 */

import { effect, useSignal, type ReadonlySignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { SegmentsResponse } from "../../api/types.gen";
import {
  formatBytes,
  formatBytesExact,
  formatInteger,
  type ByteUnit,
} from "../../base/bytes";
import type { Theme } from "../../base/tokens";
import { categoryLabel } from "../../model/category";
import type { CallStacks } from "../../model/stacks/call_stacks";
import { figureTitle, type Origin } from "../../model/words/origin";
import { figureOf } from "../export/figure";
import type { ExportShell } from "../export/export_menu";
import type { ExportSource } from "../export/source";
import { fitted, useWidth } from "../plot/canvas";
import { ChartFrame } from "../plot/chart_frame";
import { Legend } from "../plot/legend";
import { ChartTip } from "../tip/chart_tip";
import {
  blockPieces,
  hitAt,
  leastLineBytes,
  rowOfBlock,
  segmentLayout,
  steppedBlock,
  type Hit,
  type SegmentScale,
} from "./layout";
import {
  barsPx,
  blockColour,
  FOLD_PX,
  HEAD_PX,
  legendOf,
  paintMap,
  paintMarks,
  STATE,
  type MapLook,
  type SegmentFill,
} from "./paint";
import {
  addressText,
  blockWords,
  openedText,
  pinText,
  segmentTable,
  STATE_WORDS,
} from "./words";

/** What is longer is cut until all is asked for: other things stand below the map. */
const MOST_PX = 900;
/** Turns of the wheel, with a modifier key, up to the next scale. */
const WHEEL_PX = 80;
const CARD_PX = 60;

export interface SegmentMapProps {
  readonly label: string;
  /** Stands in the bar. */
  readonly title: string;
  readonly answer: SegmentsResponse;
  readonly stacks: CallStacks | null;
  readonly fill: SegmentFill;
  readonly scale: SegmentScale;
  readonly onScale: (scale: SegmentScale) => void;
  /** The chosen block's life; null: none. */
  readonly life: number | null;
  /** Address of the chosen segment; null: none. */
  readonly segment: number | null;
  /** A block that lives, or else the segment at the address. */
  readonly onChoose: (life: number | null, address: number) => void;
  readonly bar: ComponentChildren;
  readonly origin: Origin;
  readonly about: () => Readonly<Record<string, unknown>>;
  /** Filled with what the export menu writes, for menus elsewhere. */
  readonly shell: ExportShell;
  readonly theme: Theme;
  readonly byteUnit: ByteUnit;
}

/** What the pointer is on; `block` -1: the segment itself. */
interface Hover extends Hit {
  readonly x: number;
  readonly y: number;
}

export function SegmentMap(props: SegmentMapProps) {
  const { label, answer, stacks, fill, theme, byteUnit, life, segment } = props;
  const { segments, blocks } = answer;
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<HTMLDivElement>(null);
  const sightBox = useRef<HTMLDivElement>(null);
  const base = useRef<HTMLCanvasElement>(null);
  const over = useRef<HTMLCanvasElement>(null);
  const turned = useRef(0);
  const [scrolled, setScrolled] = useState(0);
  const [all, setAll] = useState(false);
  const [asTable, setAsTable] = useState(false);
  const [unfolded, setUnfolded] = useState<ReadonlySet<number>>(new Set());
  const hover = useSignal<Hover | null>(null);
  const spoken = useSignal("");
  const widthPx = useWidth(box);
  const layout = useMemo(
    () => segmentLayout(segments, props.scale, unfolded),
    [segments, props.scale, unfolded],
  );
  const totalPx = layout.top.at(-1) ?? 0;
  const shownPx = all ? totalPx : Math.min(totalPx, MOST_PX);
  const heightPx = Math.min(shownPx, Math.max(window.innerHeight, 200));
  const scrollPx = Math.max(0, Math.min(scrolled, shownPx - heightPx));
  const selected = useMemo(
    () => (life === null ? -1 : blocks.life.indexOf(life)),
    [blocks, life],
  );
  const look = useMemo<MapLook>(
    () => ({ answer, layout, fill, theme, byteUnit }),
    [answer, layout, fill, theme, byteUnit],
  );
  const sight = useMemo(
    () => ({ widthPx, heightPx, scrollPx }),
    [widthPx, heightPx, scrollPx],
  );

  useEffect(() => {
    // Whatever scrolls the page: the part in sight sticks to its top.
    const follow = (): void => {
      const top = plot.current?.getBoundingClientRect().top ?? 0;
      const own = sightBox.current?.getBoundingClientRect().top ?? 0;
      hover.value = null;
      setScrolled(own - top);
    };
    window.addEventListener("scroll", follow, { capture: true, passive: true });
    return () => window.removeEventListener("scroll", follow, { capture: true });
  }, []);
  useLayoutEffect(() => {
    const context = fitted(base.current, widthPx, heightPx);
    if (context !== null) paintMap(context, look, sight);
  }, [look, sight, asTable]);
  useEffect(
    () =>
      effect(() => {
        const context = fitted(over.current, widthPx, heightPx);
        const hovered = hover.value?.block ?? -1;
        if (context === null) return;
        paintMarks(context, look, sight, { hovered, selected, segment });
      }),
    [look, sight, selected, segment, asTable],
  );
  useEffect(() => {
    // What was pointed at may be gone at another moment.
    hover.value = null;
  }, [answer, layout]);
  useEffect(() => {
    // A block that a link names, or that was found elsewhere, comes into sight.
    reveal(selected);
  }, [selected >= 0, life]);

  function reveal(block: number): void {
    const [piece] = blockPieces(answer, layout, block);
    const top = plot.current?.getBoundingClientRect().top;
    if (piece === undefined || top === undefined) return;
    if (piece.y1 > shownPx) setAll(true);
    const y = top + piece.y0;
    if (y > 0 && y < window.innerHeight - 100) return;
    // Whatever else scrolls, such as the frame of the page, stays.
    plot.current?.closest(".content")?.scrollBy({ top: y - window.innerHeight / 2 });
  }

  function placeOf(event: MouseEvent): Hover | null {
    const corner = base.current?.getBoundingClientRect();
    if (corner === undefined) return null;
    const [x, y] = [event.clientX - corner.left, event.clientY - corner.top + scrollPx];
    const wide = 1 / barsPx(sight);
    // Beside its first byte stand a segment's words.
    const share = Math.max(0, x - HEAD_PX) * wide;
    if (x < HEAD_PX) {
      const hit =
        hitAt(answer, layout, 0, y, wide) ?? hitAt(answer, layout, 0, y - 12, wide);
      return hit && { x, y, row: hit.row, block: -1 };
    }
    const hit = share > 1 ? null : hitAt(answer, layout, share, y, wide);
    return hit && { x, y, ...hit };
  }

  function choose({ x, row, block }: Hover): void {
    const address = segments.address[row] ?? 0;
    const canFold = (segments.numAlike[row] ?? 1) > 1;
    if (x < HEAD_PX && canFold && (x < FOLD_PX || layout.numFolded[row] !== 1)) {
      // The first of its run stands for it.
      const next = new Set(unfolded);
      if (!next.delete(address)) next.add(address);
      setUnfolded(next);
      return;
    }
    const own = blocks.life[block] ?? -1;
    props.onChoose(own < 0 ? null : own, address);
  }

  /** 1: more bytes to a line, -1: fewer. */
  function zoom(sign: number): void {
    if (layout.equalBytes === null) return;
    const bytes = layout.equalBytes * (sign > 0 ? 2 : 0.5);
    props.onScale(Math.max(bytes, leastLineBytes(segments.totalBytes)));
  }

  function pointAt(block: number): void {
    const row = rowOfBlock(answer, block);
    reveal(block);
    hover.value = { x: HEAD_PX, y: (layout.top[row] ?? 0) + 30, row, block };
    spoken.value = blockWords(answer, block, stacks, byteUnit);
  }

  function onKey({ key, shiftKey }: KeyboardEvent): boolean {
    const by = key === "ArrowDown" ? 1 : key === "ArrowUp" ? -1 : 0;
    const at = hover.peek()?.block ?? selected;
    const row = rowOfBlock(answer, at);
    if (by !== 0) {
      const next = steppedBlock(answer, at, by, shiftKey);
      if (next >= 0) pointAt(next);
    } else if (key === "Enter" && row >= 0)
      choose({ x: HEAD_PX, y: 0, row, block: at });
    else if (key === "o" && row >= 0) choose({ x: 0, y: 0, row, block: -1 });
    else if (key === "+" || key === "=" || key === "w") zoom(-1);
    else if (key === "-" || key === "s") zoom(1);
    else if (key === "f") props.onScale("auto");
    else return false;
    return true;
  }

  const perLine =
    layout.equalBytes === null
      ? ""
      : `, ${formatBytes(layout.equalBytes, byteUnit).replace(/\.0+ /, " ")} a line`;
  const legend = legendOf(look);
  const source: ExportSource = {
    origin: props.origin,
    name: label,
    about: props.about,
    table: () => segmentTable(answer, stacks),
    figure: () =>
      figureOf({
        ...{ theme, widthPx, heightPx, title: figureTitle(label, props.origin) },
        paint: (pen) => paintMap(pen, look, sight),
        legend: legend.map(({ label: name, colour, bytes }) => ({
          label: `${name} ${formatBytes(bytes, byteUnit)}`,
          colour,
        })),
      }),
  };
  return (
    <ChartFrame
      kind="segment-map"
      what="Map"
      label={label}
      title={`${props.title}${perLine}`}
      subject="the map"
      source={source}
      shell={props.shell}
      zoom={zoom}
      fit={() => props.onScale("auto")}
      table={source.table}
      asTable={asTable}
      onAsTable={setAsTable}
      heightPx={asTable ? Math.min(totalPx + 40, MOST_PX) : shownPx}
      onKey={onKey}
      bar={props.bar}
      box={box}
      plotRef={plot}
      plot={
        <div
          ref={sightBox}
          class="segment-sight"
          style={{ height: `${heightPx}px` }}
          onWheel={(event) => {
            // Without a key the wheel is the page's.
            if (!event.ctrlKey && !event.metaKey) return;
            event.preventDefault();
            turned.current += event.deltaY;
            if (Math.abs(turned.current) < WHEEL_PX) return;
            zoom(turned.current);
            turned.current = 0;
          }}
          onPointerMove={(event) => {
            hover.value = placeOf(event);
          }}
          onPointerLeave={() => {
            hover.value = null;
          }}
          onClick={(event) => {
            const at = placeOf(event);
            if (at !== null) choose(at);
          }}
        >
          <canvas ref={base} />
          <canvas ref={over} />
          <Card hover={hover} look={look} stacks={stacks} {...sight} />
        </div>
      }
      legend={
        <Legend
          items={legend.map(({ label: name, colour, background, help, bytes }) => ({
            label: name,
            colour: background ?? colour,
            help: `${help}: ${formatBytesExact(bytes)}`,
            note: formatBytes(bytes, byteUnit),
          }))}
        />
      }
      help={`${formatInteger(answer.numSegments)} segments, ${formatBytes(answer.reservedBytes, byteUnit)} reserved, ${formatBytes(answer.allocatedBytes, byteUnit)} of it allocated. Up and down move from block to block, with Shift from segment to segment; Enter opens the block; O unfolds equal segments; plus and minus zoom.`}
      spoken={spoken}
    >
      {totalPx > MOST_PX && !asTable && (
        <button type="button" class="text-button" onClick={() => setAll(!all)}>
          {all ? "Show the first segments only" : "Show all segments"}
        </button>
      )}
    </ChartFrame>
  );
}

/** What is under the pointer. */
function Card(props: {
  readonly hover: ReadonlySignal<Hover | null>;
  readonly look: MapLook;
  readonly stacks: CallStacks | null;
  readonly widthPx: number;
  readonly heightPx: number;
  readonly scrollPx: number;
}) {
  const at = props.hover.value;
  const { look, stacks, widthPx, heightPx } = props;
  const { answer, layout, byteUnit } = look;
  const { segments, blocks, kinds, categories } = answer;
  if (at === null || at.row >= segments.address.length) return null;
  const { row, block } = at;
  if (block >= blocks.state.length) return null;
  const y = at.y - props.scrollPx;
  const above = y + CARD_PX > heightPx && y > heightPx / 2;
  const place = { leftPx: at.x, topPx: y, flip: at.x > widthPx / 2, above };
  const bytes = (value: number | undefined): string =>
    formatBytes(value ?? 0, byteUnit);
  const address = segments.address[row] ?? 0;
  const kind = kinds[segments.kind[row] ?? -1] ?? "";
  const within = `${bytes(segments.freeBytes[row])} free, the largest block ${bytes(segments.largestFreeBytes[row])}; ${kind}`;
  if (block < 0) {
    const folded = layout.numFolded[row] ?? 1;
    return (
      <ChartTip at={place} belowPx={12}>
        <b>
          {folded > 1
            ? `${formatInteger(folded)} segments of ${formatBytesExact(segments.totalBytes[row] ?? 0)}`
            : `${addressText(address)}, ${formatBytesExact(segments.totalBytes[row] ?? 0)}`}
        </b>
        <div>{within}</div>
        {folded === 1 && <div>Came with {openedText(segments.opened[row] ?? -1)}</div>}
        <div>{pinText(answer, address)}</div>
      </ChartTip>
    );
  }
  const state = blocks.state[block] ?? 0;
  const isLive = state !== STATE.free;
  const category = categories[blocks.category[block] ?? -1];
  const stack = blocks.stack[block] ?? -1;
  const words = segments.numActive[row] === 0 ? "free segment" : "free, inactive split";
  return (
    <ChartTip at={place} belowPx={12}>
      <div>
        <span class="swatch" style={{ background: blockColour(look, block) }} />
        <b>{bytes(blocks.size[block])}</b> {isLive ? STATE_WORDS[state] : words}{" "}
        {isLive && category !== undefined && (
          <span class="quiet">{categoryLabel(category)}</span>
        )}
      </div>
      <div>
        {stack >= 0 && stacks !== null
          ? stacks.stackLabel(stack)
          : `in ${bytes(segments.totalBytes[row])}: ${within}`}
      </div>
    </ChartTip>
  );
}
