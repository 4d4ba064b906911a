/** Reads its data from a signal: a move of the pointer renders nothing around it. */

import { effect, useComputed, useSignal, type ReadonlySignal } from "@preact/signals";
import { useEffect, useId, useMemo, useRef } from "preact/hooks";
import { boxAt, ROOT_FRAME } from "../../model/stacks/flame_tree";
import "../plot/plot.css";
import { fitted, Pace, useWidth } from "../plot/canvas";
import "./flame.css";
import { PointerTip } from "../plot/reading";
import {
  FlameLabels,
  nodeWords,
  placed,
  ROW_PX,
  type FlameLayout,
  type FlameProps,
} from "./layout";
import { labelWidths, paintFlame, rowAt, rowTop } from "./paint";
import type { Reading } from "../plot/reader";

interface Hover {
  readonly node: number;
  readonly x: number;
  readonly y: number;
}

/** Least time between drawings while data follow a pointer. */
const FOLLOW_MS = 80;

export function Flame(props: FlameProps) {
  const { label, data, stacks, frameMatches, zoom, upwards, hideRoot, heightPx } =
    props;
  const { theme, byteUnit, onFrame } = props;
  const box = useRef<HTMLDivElement>(null);
  const scroller = useRef<HTMLDivElement>(null);
  const spacer = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const drawn = useSignal<FlameLayout | null>(null);
  const hover = useSignal<Hover | null>(null);
  const hovered = useComputed(() => hover.value?.node ?? -1);
  const selected = useSignal(-1);
  const scrollPx = useSignal(0);
  const spoken = useSignal("");
  const helpId = useId();
  const widthPx = useWidth(box);
  const labels = useMemo(() => new FlameLabels(stacks, labelWidths()), [stacks]);
  const pace = useMemo(() => new Pace(FOLLOW_MS), []);

  useEffect(() => {
    let isFirst = true;
    const place = (): void => {
      const now = data.peek();
      const before = drawn.peek()?.totalPx;
      const next = now && placed(now, props, widthPx, heightPx);
      drawn.value = next;
      if (spacer.current === null || next === null || next.totalPx === before) return;
      spacer.current.style.height = `${next.totalPx}px`;
      if (next.upwards) scroller.current?.scrollTo({ top: next.totalPx });
    };
    const stop = effect(() => {
      if (data.value === null || widthPx < 2) drawn.value = null;
      else pace.ask(place, isFirst);
      isFirst = false;
    });
    return () => {
      stop();
      pace.stop();
    };
  }, [data, zoom, upwards, hideRoot, widthPx, heightPx]);
  useEffect(
    () =>
      effect(() => {
        const now = drawn.value;
        const context = fitted(canvas.current, widthPx, heightPx);
        if (now === null || context === null) return;
        paintFlame(context, {
          ...now,
          labels,
          theme,
          byteUnit,
          widthPx,
          heightPx,
          frameMatches,
          scrollPx: scrollPx.value,
          hovered: hovered.value,
          selected: cursorOf(now, selected.value),
        });
      }),
    [labels, theme, byteUnit, widthPx, heightPx, frameMatches],
  );

  function nodeAt(event: MouseEvent): Hover | null {
    const now = drawn.peek();
    const inside = canvas.current?.getBoundingClientRect();
    if (now === null || inside === undefined || inside.width === 0) return null;
    const x = event.clientX - inside.left;
    const y = event.clientY - inside.top;
    const row = rowAt(y + (scroller.current?.scrollTop ?? 0), now);
    const box = boxAt(now.boxes, x / inside.width, row);
    return box === undefined ? null : { node: box.node, x, y };
  }

  /** `isFrame`: callers and callees instead of zooming. */
  function choose(
    { data: { tree } }: FlameLayout,
    node: number,
    isFrame: boolean,
  ): void {
    selected.value = node;
    const frame = tree.frame[node] ?? ROOT_FRAME;
    if (!isFrame || onFrame === undefined) props.onZoom(tree.path(node));
    else if (frame >= 0) onFrame(frame);
  }

  function select(now: FlameLayout, node: number): void {
    selected.value = node;
    spoken.value = nodeWords(now, node, stacks, byteUnit).join(", ");
    const top = rowTop(now.data.tree.depth(node), now);
    const element = scroller.current;
    if (
      element !== null &&
      (top < element.scrollTop || top + ROW_PX > element.scrollTop + heightPx)
    ) {
      element.scrollTo({ top: top - heightPx / 2 });
    }
  }

  function onKeyDown(event: KeyboardEvent): void {
    const now = drawn.peek();
    if (now === null || event.altKey || event.ctrlKey || event.metaKey) return;
    const from = cursorOf(now, selected.peek());
    const next = afterKey(event.key, now, from);
    if (next !== null) select(now, next);
    else if (event.key === "Enter" && from >= 0) choose(now, from, event.shiftKey);
    else if (event.key === "Escape" && zoom.length > 0) props.onZoom([]);
    else return;
    event.preventDefault();
    event.stopPropagation();
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
        onScroll={({ currentTarget }) => {
          scrollPx.value = currentTarget.scrollTop;
        }}
        onKeyDown={onKeyDown}
        onPointerMove={(event) => {
          hover.value = nodeAt(event);
        }}
        onPointerLeave={() => {
          hover.value = null;
        }}
        onClick={(event) => {
          const [hit, now] = [nodeAt(event), drawn.peek()];
          if (hit !== null && now !== null) choose(now, hit.node, event.shiftKey);
        }}
      >
        <canvas ref={canvas} />
        <div ref={spacer} class="flame-spacer" />
      </div>
      <FlameTip {...props} hover={hover} drawn={drawn} widthPx={widthPx} />
      <p id={helpId} class="off-screen">
        The width of a box shows its value; callers are nearer the root. Arrow keys move
        from box to box, Enter zooms
        {onFrame !== undefined && ", Shift and Enter show callers and callees"}, Escape
        shows all.
      </p>
      <p class="off-screen" aria-live="polite">
        {spoken}
      </p>
    </div>
  );
}

/** Without a selected box a link's zoomed one; -1: none. */
function cursorOf({ root }: FlameLayout, selected: number): number {
  return selected < 0 && root > 0 ? root : selected;
}

/** null: not a key of the chart. */
function afterKey(key: string, now: FlameLayout, from: number): number | null {
  const { root, upwards } = now;
  const shown = now.boxes.map(({ node }) => node);
  const { tree } = now.data;
  if (from < 0 || !shown.includes(from)) {
    return key.startsWith("Arrow") ? root : null;
  }
  const beside = (by: -1 | 1): number => {
    const row = tree.depth(from);
    const level = shown.filter((node) => tree.depth(node) === row);
    return level[level.indexOf(from) + by] ?? from;
  };
  switch (key) {
    case upwards ? "ArrowUp" : "ArrowDown":
      return tree.children(from).find((node) => shown.includes(node)) ?? from;
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

function FlameTip(
  own: FlameProps & {
    readonly hover: ReadonlySignal<Hover | null>;
    readonly drawn: ReadonlySignal<FlameLayout | null>;
    readonly widthPx: number;
  },
) {
  const { stacks, onFrame, widthPx, heightPx } = own;
  const hit = own.hover.value;
  const now = own.drawn.value;
  if (hit === null || now === null || hit.node >= now.data.tree.numNodes) return null;
  const frame = now.data.tree.frame[hit.node] ?? ROOT_FRAME;
  const { filename, line } = stacks.frame(frame);
  const [title = "", ...rest] = nodeWords(now, hit.node, stacks, own.byteUnit);
  const place = line > 0 ? `${filename}:${line}` : filename;
  const sides = onFrame === undefined ? "" : " Shift-click: callers and callees.";
  const reading: Reading = {
    title,
    notes: [
      ...(filename === "" ? [] : [{ text: place, class: "quiet" } as const]),
      ...rest,
    ],
    foot: [{ text: `Click: zoom.${sides}`, class: "quiet" }],
  };
  return (
    <PointerTip point={hit} widthPx={widthPx} heightPx={heightPx} reading={reading} />
  );
}
