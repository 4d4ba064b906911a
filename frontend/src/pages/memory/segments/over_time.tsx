/** Segments over time: each, or each mapped part of an expandable one, while it was there. */

import { useMemo, useRef, useState } from "preact/hooks";
import { type Query } from "../../../api/client";
import type { HistoryDevice } from "../../../api/types.gen";
import { formatBytes, formatInteger } from "../../../base/bytes";
import type { CallStacks } from "../../../model/stacks/call_stacks";
import { zoomStep } from "../../../render/gestures";
import type { Viewport } from "../../../render/viewport";
import { atMoment, BlockAxis } from "../../../widgets/block_stack/axis";
import { BlockStack } from "../../../widgets/block_stack/block_stack";
import type { BlockController } from "../../../widgets/block_stack/controller";
import { drawnMarks, withFiner } from "../../../widgets/block_stack/marks";
import { ExportMenu } from "../../../widgets/export/export_menu";
import type { ExportSource } from "../../../widgets/export/source";
import { ChartButton } from "../../../widgets/line_chart/chart_button";
import { ZoomButtons } from "../../../widgets/line_chart/zoom_buttons";
import { Waiting } from "../../../widgets/state/state";
import { Segmented } from "../../shared/controls/choices";
import { HistoryMinimap } from "../history/minimap";
import { blockSource, lookAt } from "../tiles/block_source";
import { useTiles } from "../tiles/use_tiles";
import type { TileSubject } from "../tiles/wanted";
import type { ViewProps } from "../../shared/view_props";

const PICTURE_PX = 420;
const HEADROOM = 1.05;

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
  const source = blockSource({
    run: view.run,
    label,
    tiles: tiles.tiles,
    stacks,
    found: null,
    controller,
    seen: seen ?? { x0: axis.low, x1: axis.high, y0: peak, y1: 0 },
    theme,
    about: { device: device.device, order },
  });
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
          if (controller !== null) lookAt(tiles, controller, next, settled);
        }}
        onPin={(hover) => onMoment(hover.moment)}
        onRange={() => undefined}
        theme={theme}
        byteUnit={byteUnit}
        heightPx={PICTURE_PX}
        loading={tiles.loading}
        asTable={asTable}
        seen={seen}
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
