/**
 * Live allocations of one device stacked through its history: the pointer reads every
 * block, a click pins one with its moment, Shift and drag choose a range.
 */

import { useSignal } from "@preact/signals";
import { useId, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { AllocationGroup } from "../../api/types.gen";
import { formatBytes, formatInteger } from "../../base/bytes";
import { categoryColour } from "../../model/category";
import type { RunColours } from "../../render/runs";
import { DataTable } from "../export/data_table";
import "../line_chart/line_chart.css";
import { useWidth } from "../line_chart/use_size";
import { atMoment, momentText } from "./axis";
import "./block_stack.css";
import { BlockCard, freedText } from "./card";
import { groupColours, groupLabel, runColours } from "./colours";
import { BlockController } from "./controller";
import type { BlockHover, BlockInputs } from "./inputs";
import { blockTable } from "./figure";
import type { DirectLabel } from "./labels";
import { BlockLegend } from "./legend";
import { GUTTER, totalHeight } from "./paint";
import { stepBlocks, stepEvents } from "./steps";
import type { BlockTile } from "./tile";
import type { BlockStackProps } from "./types";

export function BlockStack(props: BlockStackProps) {
  const { tiles, axis, marks, theme, byteUnit, heightPx, only, found } = props;
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<HTMLDivElement>(null);
  const under = useRef<HTMLCanvasElement>(null);
  const cells = useRef<HTMLCanvasElement>(null);
  const over = useRef<HTMLCanvasElement>(null);
  const line = useRef<HTMLCanvasElement>(null);
  const [controller, setController] = useState<BlockController | null>(null);
  const spoken = useSignal("");
  const helpId = useId();
  const widthPx = useWidth(box);
  const { asTable, seen, culprits } = props;
  const [whole] = tiles;
  const finest = tiles.at(-1);
  // The tile of everything stays while others come and go.
  const known = useMemo(
    () => new WeakMap<BlockTile, Painted>(),
    [theme, only, found, culprits],
  );
  const painted = useMemo(() => {
    return new Map(
      tiles.map((tile): [BlockTile, Painted] => {
        const before = known.get(tile);
        if (before !== undefined) return [tile, before];
        const { groups, bands } = tile.answer;
        const colours = groupColours(theme, groups, tile.colour, culprits);
        const bandColours = bandColoursOf(theme, bands, groups, colours);
        const chosen =
          only === "" && found === null
            ? null
            : (slot: number): boolean => {
                const key = groups[tile.answer.lives.group[slot] ?? -1]?.key;
                if (only !== "" && key !== only) return false;
                return found === null || found(tile, slot);
              };
        const runs = runColours(tile, { theme, colours, bandColours, chosen });
        const own = { colours, bandColours, runs };
        known.set(tile, own);
        return [tile, own];
      }),
    );
  }, [tiles, theme, only, found, culprits, known]);
  const labelColour = (label: DirectLabel): string | null => {
    const own = finest === undefined ? undefined : painted.get(finest);
    if (finest === undefined || own === undefined) return null;
    const { bands, groups, lives } = finest.answer;
    if (label.overflows === true) return null;
    if (label.kind === "band") {
      // Of a band that was searched some blocks are faded and some are not.
      const faded = found !== null || (only !== "" && bands[label.of]?.key !== only);
      return faded ? null : (own.bandColours[label.of] ?? null);
    }
    const group = lives.group[label.of] ?? 0;
    const seen = found?.(finest, label.of) ?? true;
    const alone = only === "" || groups[group]?.key === only;
    return seen && alone ? (own.colours[group] ?? null) : null;
  };
  const { topBytes, stacks, moment, marked } = props;
  const { capacityBytes } = props.device;
  const inputs = useMemo<BlockInputs>(
    () => ({
      axis,
      topBytes,
      tiles,
      colours: new Map(
        [...painted].map(([tile, own]): [BlockTile, RunColours] => [tile, own.runs]),
      ),
      scene: {
        theme,
        byteUnit,
        marks,
        capacityBytes,
        showReserved: true,
        labelColour,
        pinnedX: moment === null ? null : axis.xOf(moment),
        markedX: marked === null ? null : axis.xOf(marked),
      },
      names: {
        band: (band) => bandName(finest?.answer.bands ?? [], band),
        block: (slot) => {
          if (finest === undefined || stacks === null) return "";
          const { stack, size } = finest.factsOf(slot);
          const place = stack < 0 ? "" : `${stacks.stackPlace(stack)}  `;
          return `${place}${formatBytes(size, byteUnit)}`;
        },
      },
      life: props.life,
      stack: props.stack,
      range: props.range,
      cursorText: ({ tile, column }) =>
        `${formatBytes(tile.answer.columns.active[column] ?? NaN, byteUnit)} live`,
    }),
    [
      ...[axis, topBytes, tiles, painted, theme, byteUnit, marks, capacityBytes],
      ...[moment, marked, stacks, props.life, props.stack, props.range],
    ],
  );
  const latest = useRef({ props, inputs });
  latest.current = { props, inputs };

  useLayoutEffect(() => {
    const elements = [plot, under, cells, over, line].map((ref) => ref.current);
    const [target, a, b, c, d] = elements as [
      HTMLDivElement | null,
      ...(HTMLCanvasElement | null)[],
    ];
    if (!target || !a || !b || !c || !d) return undefined;
    const made = new BlockController(
      target,
      { under: a, cells: b, over: c, line: d },
      latest.current.inputs,
      () => latest.current.props,
    );
    setController(made);
    latest.current.props.onReady(made);
    return () => {
      made.dispose();
      setController(null);
      latest.current.props.onReady(null);
    };
  }, [asTable]);
  useLayoutEffect(() => controller?.update(inputs), [controller, inputs]);
  const plotPx = Math.max(1, widthPx - GUTTER.left - GUTTER.right);
  useLayoutEffect(() => {
    if (widthPx > 0) controller?.resize({ widthPx: plotPx, heightPx });
  }, [controller, widthPx, plotPx, heightPx]);

  function announce(hover: BlockHover | null): void {
    if (hover === null) return;
    const { tile, column, block } = hover;
    const total = tile.answer.columns.active[column] ?? NaN;
    const words = [momentText(hover.moment), `${formatBytes(total, byteUnit)} live`];
    if (block !== null) {
      words.push(`block of ${formatBytes(block.size, byteUnit)}`);
      const group = tile.answer.groups[block.group];
      if (group !== undefined) words.push(groupLabel(group));
      if (stacks !== null) words.push(stacks.stackLabel(block.stack));
      words.push(`freed: ${freedText(block, props.device.numEvents)}`);
    }
    spoken.value = words.join(", ");
  }

  function onKeyDown(event: KeyboardEvent): void {
    if (controller === null || event.altKey || event.ctrlKey || event.metaKey) return;
    const far = event.shiftKey ? 10 : 1;
    const hover = controller.hovered.peek();
    if (event.key === "ArrowRight") announce(stepEvents(controller, axis, far));
    else if (event.key === "ArrowLeft") announce(stepEvents(controller, axis, -far));
    else if (event.key === "ArrowUp") announce(stepBlocks(controller, axis, far));
    else if (event.key === "ArrowDown") announce(stepBlocks(controller, axis, -far));
    else if (event.key === "Enter" && hover !== null) props.onPin(hover);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  const totalPx = totalHeight({ widthPx: plotPx, heightPx }, marks);
  const shown = whole === undefined ? undefined : painted.get(whole);
  return (
    <div>
      <div ref={box} class="block-stack" aria-busy={props.loading}>
        {asTable && finest !== undefined ? (
          <DataTable
            label={props.label}
            heightPx={totalPx}
            table={blockTable(
              finest,
              seen ?? { x0: axis.low, x1: axis.high, y0: topBytes, y1: 0 },
              stacks,
              found === null ? null : (slot) => found(finest, slot),
            )}
          />
        ) : (
          <div
            ref={plot}
            class="chart-plot block-plot"
            style={{ height: `${totalPx}px` }}
            tabIndex={0}
            role="application"
            aria-label={props.label}
            aria-describedby={helpId}
            onKeyDown={onKeyDown}
          >
            <canvas ref={under} />
            <canvas
              ref={cells}
              class="block-cells"
              style={{
                left: `${GUTTER.left}px`,
                top: `${GUTTER.top}px`,
                width: `${plotPx}px`,
                height: `${heightPx}px`,
              }}
            />
            <canvas ref={over} />
            <canvas ref={line} />
            {controller !== null && (
              <Hovering controller={controller} props={props} painted={painted} />
            )}
          </div>
        )}
      </div>
      {whole !== undefined && shown !== undefined && (
        <BlockLegend
          controller={controller}
          whole={whole}
          colours={shown.colours}
          moment={props.anchor ?? moment}
          exact={props.exact ?? null}
          byteUnit={byteUnit}
          only={only}
          onOnly={props.onOnly}
        />
      )}
      <p id={helpId} class="off-screen">
        {summary(props)} Left and right go from event to event, up and down from block
        to block, Enter pins what the cursor is on, W and S zoom, A and D pan, P goes to
        the peak, F shows everything.
      </p>
      <p class="off-screen" aria-live="polite">
        {spoken}
      </p>
    </div>
  );
}

interface Painted {
  readonly colours: readonly string[];
  readonly bandColours: readonly string[];
  readonly runs: RunColours;
}

/**
 * What is too thin has its group's colour where bands are the groups; else no colour of
 * the legend would be true of it.
 */
function bandColoursOf(
  theme: BlockStackProps["theme"],
  bands: readonly AllocationGroup[],
  groups: readonly AllocationGroup[],
  colours: readonly string[],
): readonly string[] {
  const none = categoryColour(theme, "unknown");
  return bands.map(({ key }) => {
    const group = groups.findIndex((one) => one.key === key);
    return group < 0 ? none : (colours[group] ?? none);
  });
}

/** One band of everything needs no name. */
function bandName(bands: readonly AllocationGroup[], band: number): string {
  const own = bands[band];
  return bands.length < 2 || own === undefined ? "" : groupLabel(own);
}

function summary({ device, byteUnit, label }: BlockStackProps): string {
  const peak = device.peaks.find(({ level }) => level === "active");
  const highest =
    peak === undefined
      ? ""
      : ` The highest is ${formatBytes(peak.bytes, byteUnit)} ${atMoment(peak.moment)}.`;
  return `${label}: ${formatInteger(device.numAllocations)} allocations over ${formatInteger(device.numEvents)} events.${highest}`;
}

function Hovering({
  controller,
  props,
  painted,
}: {
  readonly controller: BlockController;
  readonly props: BlockStackProps;
  readonly painted: ReadonlyMap<BlockTile, Painted>;
}) {
  const hover = controller.hovered.value;
  const failure = controller.failure.value;
  if (failure !== null) {
    return (
      <p class="block-failure" role="alert">
        The picture could not be drawn: {failure}. Reload the page.
      </p>
    );
  }
  const own = hover === null ? undefined : painted.get(hover.tile);
  if (hover === null || own === undefined) return null;
  return (
    <BlockCard
      hover={hover}
      stacks={props.stacks}
      colours={own.colours}
      bandColours={own.bandColours}
      byteUnit={props.byteUnit}
      widthPx={controller.size.widthPx}
      heightPx={controller.size.heightPx}
    />
  );
}
