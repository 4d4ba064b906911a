/** Segments over time: each, or each mapped part of an expandable one, while it was there. */

import { useMemo, useRef, useState } from "preact/hooks";
import { type Query } from "../../api/client";
import type { HistoryDevice } from "../../api/types.gen";
import { formatBytes, formatInteger } from "../../base/bytes";
import type { CallStacks } from "../../model/stacks/call_stacks";
import { figureTitle, originOf } from "../../model/words/origin";
import { zoomStep } from "../../render/gestures";
import type { Viewport } from "../../render/viewport";
import { atMoment, BlockAxis } from "../../widgets/block_stack/axis";
import { BlockStack } from "../../widgets/block_stack/block_stack";
import { groupColours } from "../../widgets/block_stack/colours";
import type { BlockController } from "../../widgets/block_stack/controller";
import { blockFigure, blockTable } from "../../widgets/block_stack/figure";
import { drawnMarks, withFiner } from "../../widgets/block_stack/marks";
import { ExportMenu } from "../../widgets/export/export_menu";
import type { ExportSource } from "../../widgets/export/source";
import { ChartButton } from "../../widgets/line_chart/chart_button";
import { ZoomButtons } from "../../widgets/line_chart/zoom_buttons";
import { Waiting } from "../../widgets/state/state";
import { Segmented } from "../controls/choices";
import { HistoryMinimap } from "../history/minimap";
import { useTiles } from "../tiles/use_tiles";
import type { TileSubject } from "../tiles/wanted";
import type { ViewProps } from "../view_props";

const PICTURE_PX = 420;
const HEADROOM = 1.05;
const MOST_PIXEL_RATIO = 2;

type Order = "category" | "allocation";

export function OverTime(props: {
  readonly view: ViewProps;
  readonly device: HistoryDevice;
  readonly place: Query;
  readonly stacks: CallStacks | null;
  readonly moment: number;
  readonly onMoment: (moment: number) => void;
  readonly label: string;
  readonly exporter: { current: ExportSource | null };
}) {
  const { view, device, place, stacks, moment, onMoment, label } = props;
  const { theme, byteUnit } = view;
  const [order, setOrder] = useState<Order>("category");
  const [only, setOnly] = useState("");
  const [asTable, setAsTable] = useState(false);
  const [seen, setSeen] = useState<Viewport | null>(null);
  const [controller, setController] = useState<BlockController | null>(null);
  const axis = useMemo(() => new BlockAxis(device, "event"), [device]);
  const subject = useMemo<TileSubject>(
    () => ({ what: "segments", place, axis: "event", order, colour: "category" }),
    [place, order],
  );
  const tiles = useTiles(view.client, subject);
  const ofPart = tiles.tiles.at(-1)?.answer.marks ?? null;
  const marks = useMemo(
    () => drawnMarks(withFiner(device.marks, ofPart), axis),
    [device, axis, ofPart],
  );
  const peak = device.peaks.find(({ level }) => level === "reserved")?.bytes ?? 1;
  const tile = tiles.tiles.at(-1);
  const origin = originOf(view.run);
  const source: ExportSource = {
    origin,
    name: label,
    table: () =>
      tile === undefined
        ? { numRows: 0, columns: [] }
        : blockTable(tile, seen ?? wholeOf(axis, peak), stacks, null),
    about: () => ({ device: device.device, order }),
    figure:
      controller === null || tile === undefined
        ? null
        : () =>
            blockFigure({
              title: figureTitle(label, origin),
              scene: controller.scene(),
              groups: tile.answer.groups,
              colours: groupColours(theme, tile.answer.groups, tile.colour),
              cellsUrl: controller.cells().toDataURL("image/png"),
            }),
  };
  const exporter = useRef(props.exporter);
  exporter.current.current = source;
  const num = tiles.tiles[0]?.answer.lives.life.length ?? 0;
  return (
    <figure class="chart">
      <div class="chart-bar">
        <figcaption>{label}</figcaption>
        <span class="chart-axis-name">
          {num > 0 && `${formatInteger(num)} pieces drawn`}
        </span>
        <Segmented
          label="What lies on what"
          options={["category", "allocation"] as const}
          chosen={order}
          words={(one) =>
            one === "category"
              ? ["Kind", "Small, large and private pools upon each other"]
              : ["Order", "All in the order they came, as memory_viz stacks them"]
          }
          onChoose={setOrder}
        />
        <ZoomButtons
          zoom={(sign) => {
            if (controller === null) return;
            controller.setView(zoomStep(controller.view, controller.limits, sign, "x"));
          }}
          fit={() => controller?.fit()}
        />
        <ChartButton
          label={asTable ? "View as picture" : "View as table"}
          icon={asTable ? "chart" : "table"}
          onClick={() => setAsTable(!asTable)}
        />
        <ExportMenu subject="the segments over time" source={source} />
      </div>
      <Waiting
        error={tiles.error}
        hasContent={num > 0}
        note="It is asked again by itself."
      />
      <BlockStack
        label={label}
        device={device}
        axis={axis}
        marks={marks}
        topBytes={peak * HEADROOM}
        tiles={tiles.tiles}
        stacks={stacks}
        only={only}
        onOnly={setOnly}
        found={null}
        moment={moment}
        life={null}
        marked={null}
        stack={null}
        range={null}
        onView={(next, settled) => {
          if (settled) setSeen(next);
          if (controller === null) return;
          const ratio = Math.min(window.devicePixelRatio || 1, MOST_PIXEL_RATIO);
          const { widthPx, heightPx } = controller.size;
          const size = {
            widthPx: Math.round(widthPx * ratio),
            heightPx: Math.round(heightPx * ratio),
          };
          tiles.loader.look({ view: next, world: controller.world, size }, settled);
        }}
        onPin={(hover) => onMoment(hover.moment)}
        onRange={() => undefined}
        theme={theme}
        byteUnit={byteUnit}
        heightPx={PICTURE_PX}
        loading={tiles.loading}
        asTable={asTable}
        seen={seen}
        hint="Click: this moment; Map then shows its segments"
        onReady={setController}
      />
      <HistoryMinimap
        device={device}
        axis={axis}
        controller={controller}
        seen={seen}
        theme={theme}
        marks={marks}
      />
      <p class="quiet">
        A click chooses the moment; Map shows its segments. Highest:{" "}
        {formatBytes(peak, byteUnit)} reserved; now {atMoment(moment)}.
      </p>
    </figure>
  );
}

function wholeOf(axis: BlockAxis, peak: number): Viewport {
  return { x0: axis.low, x1: axis.high, y0: peak, y1: 0 };
}
