/** The picture of allocations with its tools: cursor, zoom, peak, marks, minimap, files. */

import { useCallback, useMemo, useRef, useState } from "preact/hooks";
import type { Client, Query } from "../../../api/client";
import type {
  AllocationLiveResponse,
  HistoryFacts,
  RunSummary,
} from "../../../api/types.gen";
import { formatBytes } from "../../../base/bytes";
import { zoomStep } from "../../../render/gestures";
import type { Viewport } from "../../../render/viewport";
import { atMoment, sinceText } from "../../../widgets/block_stack/axis";
import { BlockStack } from "../../../widgets/block_stack/block_stack";
import type { BlockController } from "../../../widgets/block_stack/controller";
import { spansAt } from "../../../widgets/block_stack/marks";
import type { BlockStackProps } from "../../../widgets/block_stack/types";
import { ExportMenu } from "../../../widgets/export/export_menu";
import type { ExportSource } from "../../../widgets/export/source";
import { Icon } from "../../../widgets/icon/icon";
import { ZoomButtons } from "../../../widgets/line_chart/zoom_buttons";
import { Menu } from "../../../widgets/menu/menu";
import { HistoryMinimap } from "../history/minimap";
import { blockSource } from "../tiles/block_source";
import type { AllocationActions } from "./commands";
import { momentName } from "../history/moment";

export interface PictureProps extends Omit<BlockStackProps, "asTable" | "seen"> {
  readonly run: RunSummary;
  readonly client: Client;
  /** run, history, device, stream, pool. */
  readonly place: Query;
  readonly facts: HistoryFacts;
  readonly controller: BlockController | null;
  readonly actions: AllocationActions;
  readonly hasOom: boolean;
  /** The moment that is shown while nothing points: the same as below the picture. */
  readonly anchor: number;
  /** What is live at it, exactly; null until that is known. */
  readonly anchored: AllocationLiveResponse | null;
  /** Something that is being done, or went wrong, in a few words. */
  readonly note: string;
  readonly exporter: { current: ExportSource | null };
  /** Facts beside the columns in JSON. */
  readonly about: Readonly<Record<string, unknown>>;
}

export function Picture(props: PictureProps) {
  const { controller, actions, label, tiles, stacks, device, axis, found } = props;
  const [asTable, setAsTable] = useState(false);
  const [seen, setSeen] = useState<Viewport | null>(null);
  const told = useRef(props.onView);
  told.current = props.onView;
  const onView = useCallback((view: Viewport, settled: boolean): void => {
    told.current(view, settled);
    if (settled) setSeen(view);
  }, []);
  const source = useMemo<ExportSource>(
    () =>
      blockSource({
        ...props,
        seen,
        about: {
          ...props.about,
          min_bytes: tiles.at(-1)?.answer.minBytes ?? null,
          note: "Blocks below min_bytes are summed up in the picture and not listed.",
        },
      }),
    [props, seen],
  );
  props.exporter.current = source;
  return (
    <figure class="chart allocations-picture">
      <div class="chart-bar">
        <figcaption class="off-screen">{label}</figcaption>
        <Readout {...props} />
        <button
          type="button"
          class="text-button"
          title="Pin the highest moment (P)"
          onClick={actions.toPeak}
        >
          Peak
        </button>
        {props.hasOom && (
          <button
            type="button"
            class="text-button allocations-oom"
            title="Pin the next out-of-memory error"
            onClick={actions.toOom}
          >
            Out of memory
          </button>
        )}
        <div class="chart-tools">
          <ZoomButtons
            zoom={(sign) => {
              if (controller === null) return;
              const { view, limits } = controller;
              controller.setView(zoomStep(view, limits, sign, "x"));
            }}
            fit={() => controller?.fit()}
          />
          <Menu
            label="More of this picture"
            empty=""
            items={[
              {
                id: "mark",
                label:
                  props.marked === null ? "Mark this moment (M)" : "Mark again (M)",
                run: actions.mark,
              },
              { id: "compare", label: "Compare…", run: actions.compare },
              {
                id: "height",
                label: "Fit the height to what is in sight (H)",
                run: () => controller?.fitHeight(),
              },
              {
                id: "table",
                label: asTable ? "View as picture" : "View as table",
                run: () => setAsTable(!asTable),
              },
            ]}
          >
            <Icon name="more" />
          </Menu>
          <ExportMenu subject="the picture of allocations" source={source} />
        </div>
      </div>
      <BlockStack {...props} onView={onView} asTable={asTable} seen={seen} />
      <HistoryMinimap
        device={device}
        axis={axis}
        controller={controller}
        seen={seen}
        theme={props.theme}
        marks={props.marks}
      />
      {found !== null && tiles.length > 0 && stacks === null && (
        <p class="quiet">The stacks are still being read; the search waits for them.</p>
      )}
    </figure>
  );
}

/** What stands at the cursor, else at the moment that all below speaks of. */
function Readout(props: PictureProps) {
  const { controller, axis, tiles, anchor, byteUnit, device, marks } = props;
  const hover = controller?.hovered.value ?? null;
  const [whole] = tiles;
  if (whole === undefined) return <span class="chart-axis-name">{props.note}</span>;
  const shown = hover?.moment ?? anchor;
  const tile = hover?.tile ?? tiles.at(-1) ?? whole;
  const column = hover?.column ?? whole.columnOf(shown);
  const at = hover === null ? whole : tile;
  const { active, reserved } = at.answer.columns;
  const exact = props.anchored?.moment === shown ? props.anchored : null;
  const activeBytes = exact?.activeBytes ?? active[column] ?? NaN;
  const reservedBytes = exact?.reservedBytes ?? reserved[column] ?? NaN;
  const name = momentName(device, shown);
  const step = spansAt(marks, axis.xOf(shown)).map(({ label }) => label);
  const ms = device.hasTimes && shown >= 0 ? axis.msOf(shown) : NaN;
  return (
    <span class="allocations-readout" aria-hidden="true">
      {props.note !== "" && <span class="quiet">{props.note}</span>}
      <b>{formatBytes(activeBytes, byteUnit)}</b>
      <span class="quiet">
        live of {formatBytes(reservedBytes, byteUnit)} reserved {atMoment(shown)}
        {name !== "" && `, ${name}`}
        {Number.isFinite(ms) && `, ${sinceText(ms)}`}
        {step.length > 0 && ` · ${step.slice(0, 2).join(", ")}`}
      </span>
    </span>
  );
}
