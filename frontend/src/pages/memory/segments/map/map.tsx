/** A row per segment; the page scrolls, and only the visible part is drawn. */

import { effect, useSignal, type ReadonlySignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { counted, formatBytes, sizeName } from "../../../../base/bytes";
import { useWidgetFlag } from "../../../../base/widget_words";
import { figureTitle, originOf } from "../../../../model/words/origin";
import { groupColours } from "../../../../widgets/block_stack/paint/colours";
import { figureOf } from "../../../../widgets/export/figure";
import type { ExportSource } from "../../../../widgets/export/source";
import { fitted, useWidth } from "../../../../widgets/plot/canvas";
import { ChartFrame } from "../../../../widgets/plot/chart_frame";
import { Legend } from "../../../../widgets/plot/legend";
import { PointerTip } from "../../../../widgets/plot/reading";
import { Segmented, Switch, TextButton } from "../../../shared/controls/choices";
import { SEGMENTS, type OpenSegments } from "../params";
import {
  blockPieces,
  HEAD_PX,
  hitAt,
  leastLineBytes,
  rowOfBlock,
  segmentLayout,
  steppedBlock,
  type Hit,
} from "./layout";
import { FOLD_PX, legendOf, paintMap, paintMarks } from "./paint";
import type { MapPicture } from "./picture";
import { blockWords, readingOf, segmentTable } from "./text";

/** Taller maps are cut until the user shows all: other panels are below. */
const MOST_PX = 900;
/** Wheel distance per scale, with a modifier key. */
const WHEEL_PX = 80;

/** In px of the whole map. */
interface Hover extends Hit {
  readonly x: number;
  readonly y: number;
}

export function SegmentMap(props: OpenSegments) {
  const { view, params, setParams, state: answer, stacks, culprits, label } = props;
  const { theme, byteUnit } = view;
  const { life, segment, fill, scale } = params;
  const { segments, blocks, categories } = answer;
  const { moment } = answer.moment;
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<HTMLDivElement>(null);
  const sightBox = useRef<HTMLDivElement>(null);
  const base = useRef<HTMLCanvasElement>(null);
  const over = useRef<HTMLCanvasElement>(null);
  const turned = useRef(0);
  const [scrolled, setScrolled] = useState(0);
  const [all, setAll] = useState(false);
  const [asTable, setAsTable] = useWidgetFlag("as_table", "segments");
  const [unfolded, setUnfolded] = useState<ReadonlySet<number>>(new Set());
  const hover = useSignal<Hover | null>(null);
  const spoken = useSignal("");
  const widthPx = useWidth(box);
  const layout = useMemo(
    () => segmentLayout(segments, scale, widthPx, unfolded),
    [segments, scale, widthPx, unfolded],
  );
  const totalPx = layout.top.at(-1) ?? 0;
  const shownPx = all ? totalPx : Math.min(totalPx, MOST_PX);
  const heightPx = Math.min(shownPx, Math.max(window.innerHeight, 200));
  const scrollPx = Math.max(0, Math.min(scrolled, shownPx - heightPx));
  const selected = life === null ? -1 : blocks.life.indexOf(life);
  const colours = useMemo(
    () => groupColours(theme, categories, "category", culprits),
    [theme, categories, culprits],
  );
  const picture = useMemo<MapPicture>(
    () => ({
      answer,
      layout,
      fill,
      colours,
      theme,
      byteUnit,
      heightPx,
      scrollPx,
    }),
    [answer, layout, fill, colours, theme, byteUnit, heightPx, scrollPx],
  );

  useEffect(() => {
    // Any ancestor may scroll: the visible part sticks to its top.
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
    const pen = fitted(base.current, widthPx, heightPx);
    if (pen !== null) paintMap(pen, picture);
  }, [picture, asTable]);
  useEffect(
    () =>
      effect(() => {
        const pen = fitted(over.current, widthPx, heightPx);
        const hovered = hover.value?.block ?? -1;
        if (pen !== null) paintMarks(pen, picture, { hovered, selected, segment });
      }),
    [picture, selected, segment, asTable],
  );
  useEffect(() => {
    // The hovered object may be gone at another moment.
    hover.value = null;
  }, [answer, layout]);
  useEffect(() => {
    // A block from a link or a search comes into sight.
    reveal(selected);
  }, [selected >= 0, life]);

  function reveal(block: number): void {
    const [piece] = blockPieces(answer, layout, block);
    const top = plot.current?.getBoundingClientRect().top;
    if (piece === undefined || top === undefined) return;
    if (piece.y + piece.height > shownPx) setAll(true);
    const y = top + piece.y;
    if (y > 0 && y < window.innerHeight - 100) return;
    // Scrolls this page only, not the frames around it.
    plot.current?.closest(".content")?.scrollBy({ top: y - window.innerHeight / 2 });
  }

  function placeOf(event: MouseEvent): Hover | null {
    const corner = base.current?.getBoundingClientRect();
    if (corner === undefined) return null;
    const point = {
      x: event.clientX - corner.left,
      y: event.clientY - corner.top + scrollPx,
    };
    const hit = hitAt(answer, layout, point);
    return hit && { ...point, ...hit };
  }

  function choose({ x, row, block }: Hover): void {
    const address = segments.address[row] ?? 0;
    const canFold = (segments.numAlike[row] ?? 1) > 1;
    if (x < HEAD_PX && canFold && (x < FOLD_PX || layout.numFolded[row] !== 1)) {
      // A run is named by its first segment.
      const next = new Set(unfolded);
      if (!next.delete(address)) next.add(address);
      setUnfolded(next);
      return;
    }
    const own = blocks.life[block] ?? -1;
    // A free block has no details; its segment has.
    if (own >= 0) setParams({ life: own, segment: null });
    else setParams({ life: null, segment: address === segment ? null : address });
  }

  /** 1: more bytes per line, -1: fewer. */
  function zoom(sign: number): void {
    if (layout.equalBytes === null) return;
    const bytes = layout.equalBytes * (sign > 0 ? 2 : 0.5);
    setParams({ scale: Math.max(bytes, leastLineBytes(segments.totalBytes)) });
  }

  function pointAt(block: number): void {
    const row = rowOfBlock(answer, block);
    reveal(block);
    hover.value = { x: HEAD_PX, y: (layout.top[row] ?? 0) + 30, row, block };
    spoken.value = blockWords({ row, block }, picture, stacks);
  }

  function onKey({ key, shiftKey }: KeyboardEvent): boolean {
    const by = key === "ArrowDown" ? 1 : key === "ArrowUp" ? -1 : 0;
    const block = hover.peek()?.block ?? selected;
    const row = rowOfBlock(answer, block);
    if (by !== 0) {
      const next = steppedBlock(answer, block, by, shiftKey);
      if (next >= 0) pointAt(next);
    } else if (key === "Enter" && row >= 0) choose({ x: HEAD_PX, y: 0, row, block });
    else if (key === "o" && row >= 0) choose({ x: 0, y: 0, row, block: -1 });
    else if (key === "+" || key === "=" || key === "w") zoom(-1);
    else if (key === "-" || key === "s") zoom(1);
    else if (key === "f") setParams({ scale: "auto" });
    else return false;
    return true;
  }

  const bytes = (value: number): string => formatBytes(value, byteUnit);
  const num = counted(answer.numSegments, "segment");
  const perLine =
    layout.equalBytes === null
      ? ""
      : `, ${sizeName(layout.equalBytes, byteUnit)} a line`;
  const legend = legendOf(picture);
  const name = `${label} at event ${moment}`;
  const source: ExportSource = {
    name,
    origin: originOf(view.run),
    about: () => ({ device: answer.device, moment }),
    table: () => segmentTable(answer, stacks),
    figure: () =>
      figureOf({
        theme,
        widthPx,
        heightPx,
        title: figureTitle(name, originOf(view.run)),
        paint: (pen) => paintMap(pen, picture),
        legend: legend.map((entry) => ({
          ...entry,
          label: `${entry.label} ${entry.note ?? ""}`,
        })),
      }),
  };
  const left = answer.numSegments - segments.address.length;
  return (
    <>
      <ChartFrame
        source={source}
        zoom={zoom}
        asTable={asTable}
        onKey={onKey}
        box={box}
        spoken={spoken}
        kind="segment-map"
        drawing="Map"
        label={name}
        title={`${num}, ${bytes(answer.reservedBytes)}${perLine}`}
        subject="the map"
        shell={view}
        fit={() => setParams({ scale: "auto" })}
        table={source.table}
        onAsTable={setAsTable}
        heightPx={asTable ? Math.min(totalPx + 40, MOST_PX) : shownPx}
        bar={<Looks {...props} />}
        plotRef={plot}
        plot={
          <div
            ref={sightBox}
            class="segment-sight"
            style={{ height: `${heightPx}px` }}
            onWheel={(event) => {
              // Without a modifier key the wheel scrolls the page.
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
              const hit = placeOf(event);
              if (hit !== null) choose(hit);
            }}
          >
            <canvas ref={base} />
            <canvas ref={over} />
            <Card hover={hover} picture={picture} stacks={stacks} />
          </div>
        }
        legend={<Legend items={legend} />}
        help={`${num}, ${bytes(answer.reservedBytes)} reserved, ${bytes(answer.allocatedBytes)} of it allocated. Up and down move from block to block, with Shift from segment to segment; Enter opens the block; O unfolds equal segments; plus and minus zoom.`}
      >
        {totalPx > MOST_PX && !asTable && (
          <TextButton press={() => setAll(!all)}>
            {all ? "Show the first segments only" : "Show all segments"}
          </TextButton>
        )}
      </ChartFrame>
      {left > 0 && (
        <p class="quiet">
          Not drawn: {counted(left, "more segment")}. Filter, or sort another way, to
          see them. Sums count them.
        </p>
      )}
    </>
  );
}

const SCALES = {
  auto: ["To scale", "A line is the same bytes for all; longer segments go on below"],
  fit: ["Fill width", "Every segment fills its line, whatever its size"],
} as const;

function Looks({ view, params: { scale }, setParams }: OpenSegments) {
  return (
    <span class="row on-hover">
      <Segmented
        label="Scale of the lines"
        chosen={scale === "fit" ? "fit" : "auto"}
        labels={SCALES}
        onChoose={(option) => setParams({ scale: option })}
      />
      <Switch view={view} of={SEGMENTS.fill} label="Colour by" />
    </span>
  );
}

function Card({
  hover,
  picture,
  stacks,
}: Pick<OpenSegments, "stacks"> & {
  readonly hover: ReadonlySignal<Hover | null>;
  readonly picture: MapPicture;
}) {
  const hit = hover.value;
  const reading = hit && readingOf(hit, picture, stacks);
  if (hit === null || reading === null) return null;
  const { layout, heightPx, scrollPx } = picture;
  const widthPx = HEAD_PX + layout.barsPx;
  const own = { x: hit.x, y: hit.y - scrollPx };
  return (
    <PointerTip point={own} widthPx={widthPx} heightPx={heightPx} reading={reading} />
  );
}
