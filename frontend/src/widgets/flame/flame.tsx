/**
 * A flamegraph of bytes that is drawn anew with every move of the mouse: it listens to
 * its data by itself, so that nothing around it is rendered meanwhile.
 */

import { useSignal, type ReadonlySignal } from "@preact/signals";
import { useEffect, useId, useMemo, useRef } from "preact/hooks";
import { formatBytes, formatBytesExact, formatShare } from "../../base/bytes";
import type { CallStacks } from "../../model/stacks/call_stacks";
import {
  boxAt,
  flameBoxes,
  ROOT_FRAME,
  type FlameBoxes,
} from "../../model/stacks/flame_tree";
import { formatSigned } from "../../model/words/signed";
import "../line_chart/line_chart.css";
import { useWidth } from "../line_chart/use_size";
import "./flame.css";
import { ChartTip } from "../tip/chart_tip";
import { FlameLabels, LEAST_BOX_PX, rootText, ROW_PX, zoomedNode } from "./layout";
import { labelWidths, paintFlame, rowAt, rowTop, type FlamePaint } from "./paint";
import type { FlameData, FlameProps } from "./types";

const MOST_PIXEL_RATIO = 2;

/** What is pointed at. */
interface Hover {
  readonly node: number;
  readonly x: number;
  readonly y: number;
}

/** Numbers that change with every move of a pointer are drawn this far apart. */
const FOLLOW_MS = 80;

/** The drawing in progress: everything a paint needs, kept between paints. */
interface Drawn {
  readonly data: FlameData;
  readonly boxes: FlameBoxes;
  readonly root: number;
  readonly totalPx: number;
}

export function Flame(props: FlameProps) {
  const { label, data, stacks, heightPx } = props;
  const box = useRef<HTMLDivElement>(null);
  const scroller = useRef<HTMLDivElement>(null);
  const spacer = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const drawn = useRef<Drawn | null>(null);
  const selected = useRef(-1);
  const hover = useSignal<Hover | null>(null);
  const spoken = useSignal("");
  const helpId = useId();
  const widthPx = useWidth(box);
  const labels = useMemo(() => new FlameLabels(stacks, labelWidths()), [stacks]);
  const latest = useRef(props);
  latest.current = props;

  const frame = useRef(0);
  const paint = useRef((): void => undefined);
  paint.current = (): void => {
    frame.current = 0;
    const element = canvas.current;
    const context = element?.getContext("2d") ?? null;
    if (element === null || context === null || widthPx < 2) return;
    const begin = performance.now();
    const ratio = Math.min(window.devicePixelRatio || 1, MOST_PIXEL_RATIO);
    const size = [Math.round(widthPx * ratio), Math.round(heightPx * ratio)] as const;
    context.setTransform(1, 0, 0, 1, 0, 0);
    if (element.width !== size[0] || element.height !== size[1]) {
      [element.width, element.height] = size;
    } else context.clearRect(0, 0, size[0], size[1]);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const next = place(data.peek(), props, widthPx);
    const before = drawn.current?.totalPx ?? 0;
    drawn.current = next;
    if (spacer.current !== null && next !== null && next.totalPx !== before) {
      spacer.current.style.height = `${next.totalPx}px`;
      if (props.upwards === true) scroller.current?.scrollTo({ top: next.totalPx });
    }
    if (next === null) return;
    paintFlame(context, {
      ...shape(next, props),
      data: next.data,
      boxes: next.boxes,
      labels,
      theme: props.theme,
      widthPx,
      heightPx,
      scrollPx: scroller.current?.scrollTop ?? 0,
      found: props.found,
      hovered: next.boxes.node.indexOf(hover.peek()?.node ?? -1),
      selected: next.boxes.node.indexOf(selected.current),
      rootText: rootText(next.data, props.byteUnit),
    });
    element.dataset["drawMs"] = (performance.now() - begin).toFixed(2);
  };
  const paintSoon = (): void => {
    frame.current ||= window.requestAnimationFrame(() => paint.current());
  };
  useEffect(() => paintSoon());
  useEffect(() => {
    let timer = 0;
    const follow = (): void => {
      if (timer !== 0) return;
      timer = window.setTimeout(() => {
        timer = 0;
        paintSoon();
      }, FOLLOW_MS);
    };
    const stops = [data.subscribe(follow), hover.subscribe(paintSoon)];
    return () => {
      for (const stop of stops) stop();
      window.clearTimeout(timer);
      window.cancelAnimationFrame(frame.current);
      frame.current = 0;
    };
  }, [data]);

  function nodeAt(event: MouseEvent): Hover | null {
    const found = drawn.current;
    const inside = canvas.current?.getBoundingClientRect();
    if (found === null || inside === undefined || inside.width === 0) return null;
    const x = event.clientX - inside.left;
    const y = event.clientY - inside.top;
    const top = y + (scroller.current?.scrollTop ?? 0);
    const row = rowAt(top, shape(found, props));
    const index = boxAt(found.boxes, x / inside.width, row);
    return index < 0 ? null : { node: found.boxes.node[index] ?? 0, x, y };
  }

  function zoomTo(node: number): void {
    const found = drawn.current;
    if (found === null) return;
    props.onZoom(found.data.tree.path(node));
  }

  function select(node: number): void {
    selected.current = node;
    const found = drawn.current;
    if (found === null) return;
    spoken.value = words(found, node, props).join(", ");
    const top = rowTop(found.data.tree.depth[node] ?? 0, shape(found, props));
    const at = scroller.current;
    if (at !== null && (top < at.scrollTop || top + ROW_PX > at.scrollTop + heightPx)) {
      at.scrollTo({ top: top - heightPx / 2 });
    }
    paintSoon();
  }

  function onKeyDown(event: KeyboardEvent): void {
    const found = drawn.current;
    if (found === null || event.altKey || event.ctrlKey || event.metaKey) return;
    const next = afterKey(event.key, found, selected.current, props.upwards === true);
    if (next !== null) select(next);
    else if (event.key === "Enter" && selected.current >= 0) {
      if (event.shiftKey) frameChosen(found, selected.current);
      else zoomTo(selected.current);
    } else if (event.key === "Escape" && props.zoom.length > 0) props.onZoom([]);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  function frameChosen({ data: shown }: Drawn, node: number): void {
    const wanted = shown.tree.frame[node] ?? ROOT_FRAME;
    if (wanted >= 0) props.onFrame(wanted);
  }

  return (
    <div ref={box} class="flame">
      <div
        ref={scroller}
        class="flame-scroll"
        style={{ height: `${heightPx}px` }}
        tabIndex={0}
        role="application"
        aria-label={label}
        aria-describedby={helpId}
        onScroll={paintSoon}
        onKeyDown={onKeyDown}
        onPointerMove={(event) => {
          hover.value = nodeAt(event);
        }}
        onPointerLeave={() => {
          hover.value = null;
        }}
        onClick={(event) => {
          const at = nodeAt(event);
          const found = drawn.current;
          if (at === null || found === null) return;
          selected.current = at.node;
          if (event.shiftKey) frameChosen(found, at.node);
          else zoomTo(at.node);
        }}
      >
        <canvas
          ref={canvas}
          style={{ width: `${widthPx}px`, height: `${heightPx}px` }}
        />
        <div ref={spacer} class="flame-spacer" />
      </div>
      <FlameTip hover={hover} drawn={drawn} latest={latest} widthPx={widthPx} />
      <p id={helpId} class="off-screen">
        Boxes are as wide as their bytes, callers above what they call. Arrow keys move
        from box to box, Enter zooms, Shift and Enter look at a frame from both sides,
        Escape shows all.
      </p>
      <p class="off-screen" aria-live="polite">
        {spoken}
      </p>
    </div>
  );
}

function shape(
  { totalPx }: Pick<Drawn, "totalPx">,
  props: FlameProps,
): Pick<FlamePaint, "upwards" | "hideRoot" | "totalPx"> {
  return {
    upwards: props.upwards === true,
    hideRoot: props.hideRoot === true,
    totalPx,
  };
}

function place(
  data: FlameData | null,
  props: FlameProps,
  widthPx: number,
): Drawn | null {
  if (data === null) return null;
  const root = zoomedNode(data.tree, props.zoom);
  const boxes = flameBoxes(data.tree, data.values, root, LEAST_BOX_PX / widthPx);
  const rows = Math.max(1, boxes.numRows - (props.hideRoot === true ? 1 : 0));
  const totalPx = Math.max(rows * ROW_PX, props.upwards === true ? props.heightPx : 0);
  return { data, boxes, root, totalPx };
}

/** The node a key leads to; null where the key is not the drawing's. */
function afterKey(
  key: string,
  { data, boxes, root }: Drawn,
  from: number,
  upwards: boolean,
): number | null {
  const { tree } = data;
  if (from < 0 || !boxes.node.includes(from)) {
    return key.startsWith("Arrow") ? root : null;
  }
  const beside = (by: -1 | 1): number => {
    const row = tree.depth[from];
    const level = Array.from(boxes.node).filter((node) => tree.depth[node] === row);
    return level[level.indexOf(from) + by] ?? from;
  };
  switch (key) {
    case upwards ? "ArrowUp" : "ArrowDown":
      return tree.children(from).find((node) => boxes.node.includes(node)) ?? from;
    case upwards ? "ArrowDown" : "ArrowUp":
      return Math.max(0, tree.parent[from] ?? 0);
    case "ArrowRight":
      return beside(1);
    case "ArrowLeft":
      return beside(-1);
    default:
      return null;
  }
}

/** What a box says: its name, where it is, its bytes and shares. */
function words(
  { data, root }: Pick<Drawn, "data" | "root">,
  node: number,
  { stacks, byteUnit }: FlameProps,
): readonly string[] {
  const { tree, values, change, title } = data;
  const frame = tree.frame[node] ?? ROOT_FRAME;
  const bytes = values[node] ?? 0;
  const name = frame === ROOT_FRAME ? title : stacks.frameLabel(frame);
  if (change !== null) {
    const [before, after] = [change.before[node] ?? 0, change.after[node] ?? 0];
    const [earlier, later] = change.names ?? ["before", "after"];
    return [
      name,
      formatSigned(after - before, "bytes", byteUnit),
      `${formatBytes(before, byteUnit)} ${earlier}, ${formatBytes(after, byteUnit)} ${later}`,
    ];
  }
  const shares = [`${formatShare(bytes, values[0] ?? 0)} of all`];
  if (root > 0)
    shares.push(`${formatShare(bytes, values[root] ?? 0)} of what is zoomed to`);
  return [
    name,
    `${formatBytes(bytes, byteUnit)} (${formatBytesExact(bytes)})`,
    ...shares,
  ];
}

function FlameTip(own: {
  readonly hover: ReadonlySignal<Hover | null>;
  readonly drawn: { readonly current: Drawn | null };
  readonly latest: { readonly current: FlameProps };
  readonly widthPx: number;
}) {
  const at = own.hover.value;
  const found = own.drawn.current;
  if (at === null || found === null || at.node >= found.data.tree.numNodes) return null;
  const props = own.latest.current;
  const frame = found.data.tree.frame[at.node] ?? ROOT_FRAME;
  const file = frame >= 0 ? placeText(props.stacks, frame) : "";
  const [name, ...rest] = words(found, at.node, props);
  const place = { leftPx: at.x, topPx: at.y, flip: at.x > own.widthPx / 2 };
  return (
    <ChartTip at={place} belowPx={14} kind="flame-tip">
      <div class="chart-tip-x">{name}</div>
      {file !== "" && <div class="chart-note">{file}</div>}
      {rest.map((line) => (
        <div key={line}>{line}</div>
      ))}
      <div class="chart-note">Click: zoom. Shift-click: callers and callees.</div>
    </ChartTip>
  );
}

function placeText(stacks: CallStacks, row: number): string {
  const { filename, line } = stacks.frame(row);
  return line > 0 ? `${filename}:${line}` : filename;
}
