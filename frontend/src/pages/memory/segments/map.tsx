/** Why memory cannot be used, the map with its tools, and what stands below it. */

import { useMemo, useRef, useState } from "preact/hooks";
import type {
  HistoryDevice,
  HistoryFacts,
  SegmentsResponse,
} from "../../../api/types.gen";
import { formatBytes, formatInteger } from "../../../base/bytes";
import type { CallStacks } from "../../../model/stacks/call_stacks";
import { figureTitle, originOf } from "../../../model/words/origin";
import { DataTable } from "../../../widgets/export/data_table";
import { ExportMenu } from "../../../widgets/export/export_menu";
import type { ExportSource } from "../../../widgets/export/source";
import { ChartButton } from "../../../widgets/line_chart/chart_button";
import { mapFigure } from "../../../widgets/segment_map/figure";
import {
  leastLineBytes,
  rowOfBlock,
  segmentLayout,
  type SegmentLayout,
} from "../../../widgets/segment_map/layout";
import { SegmentLegend } from "../../../widgets/segment_map/legend";
import { SegmentMap, type ShownMap } from "../../../widgets/segment_map/segment_map";
import { segmentTable } from "../../../widgets/segment_map/words";
import { Choice, RowChoice, Segmented } from "../../shared/controls/choices";
import type { ViewProps } from "../../shared/view_props";
import { segmentWord, SORTS, type SegmentsParams } from "./state/params";
import { pinWords } from "./state/why";
import { Below } from "./below";
import { Why } from "./why";
import { SORT_WORDS } from "./words";

const MAP_PX = 500;

export interface MapPartProps {
  readonly view: ViewProps;
  readonly params: SegmentsParams;
  readonly facts: HistoryFacts;
  readonly device: HistoryDevice;
  readonly state: SegmentsResponse;
  readonly stacks: CallStacks | null;
  readonly label: string;
  readonly exporter: { current: ExportSource | null };
}

export function MapPart(props: MapPartProps) {
  const { view, params, facts, device, state, stacks, label } = props;
  const { setParams, byteUnit, theme } = view;
  const [asTable, setAsTable] = useState(false);
  const shown = useRef<ShownMap | null>(null);
  const pinned = useMemo(
    () => pinWords(state, stacks, byteUnit),
    [state, stacks, byteUnit],
  );
  const [unfolded, setUnfolded] = useState<ReadonlySet<number>>(new Set());
  const layout = useMemo(
    () => segmentLayout(state.segments, params.scale, unfolded),
    [state, params.scale, unfolded],
  );
  const zoom = (sign: 1 | -1): void => {
    if (layout.equalBytes === null) return;
    const bytes = layout.equalBytes * (sign > 0 ? 0.5 : 2);
    const least = leastLineBytes(state.segments.totalBytes);
    setParams({ scale: Math.max(bytes, least).toString() });
  };
  const origin = originOf(view.run);
  const source: ExportSource = {
    origin,
    name: `${label} at event ${state.moment.moment}`,
    table: () => segmentTable(state, facts, stacks, pinned),
    about: () => ({ device: device.device, moment: state.moment.moment }),
    figure: () => {
      const now = shown.current;
      if (now === null) throw new Error("the map is not shown; leave the table first");
      return mapFigure({
        title: figureTitle(
          `${label} at event ${formatInteger(state.moment.moment)}`,
          origin,
        ),
        answer: state,
        facts,
        layout,
        fill: params.fill,
        theme,
        byteUnit,
        cellsUrl: now.cells.toDataURL("image/png"),
        pinned,
        ...now,
      });
    },
  };
  props.exporter.current = source;
  const onSegment = (address: number): void =>
    setParams({
      segment: address === params.segment ? null : segmentWord(address),
      life: null,
    });
  const left = state.numSegments - state.segments.address.length;
  return (
    <>
      <Why
        state={state}
        facts={facts}
        stacks={stacks}
        request={params.request}
        onRequest={(bytes) =>
          setParams({ request: bytes === null ? null : bytes.toString() })
        }
        onLife={(life) => setParams({ life: life.toString(), segment: null })}
        byteUnit={byteUnit}
      />
      <figure class="chart segments-map">
        <Tools
          {...props}
          layout={layout}
          zoom={zoom}
          asTable={asTable}
          setAsTable={setAsTable}
          source={source}
        />
        {asTable ? (
          <DataTable
            label={label}
            table={segmentTable(state, facts, stacks, pinned)}
            heightPx={MAP_PX}
          />
        ) : state.segments.address.length === 0 ? (
          <p class="quiet segments-none" style={{ height: `${MAP_PX}px` }}>
            {isFiltered(params)
              ? "No segment passes the filter at this moment."
              : "Nothing is reserved at this moment."}
          </p>
        ) : (
          <SegmentMap
            label={label}
            answer={state}
            facts={facts}
            stacks={stacks}
            layout={layout}
            fill={params.fill}
            life={params.life}
            segment={params.segment}
            pinned={pinned}
            onBlock={(block) => {
              const life = state.blocks.life[block] ?? -1;
              if (life >= 0) setParams({ life: life.toString(), segment: null });
              // A free block has no story of its own; its segment has.
              else onSegment(state.segments.address[rowOfBlock(state, block)] ?? 0);
            }}
            onSegment={(row) => onSegment(state.segments.address[row] ?? 0)}
            theme={theme}
            byteUnit={byteUnit}
            onFold={(row) => {
              // The first of its run stands for it.
              const first = state.segments.address[row] ?? -1;
              const next = new Set(unfolded);
              if (!next.delete(first)) next.add(first);
              setUnfolded(next);
            }}
            onZoom={zoom}
            onReady={(now) => {
              shown.current = now;
            }}
          />
        )}
        <SegmentLegend
          answer={state}
          fill={params.fill}
          theme={theme}
          byteUnit={byteUnit}
        />
        {left > 0 && (
          <p class="quiet">
            {formatInteger(left)} more segments are not drawn: filter, or sort another
            way, to see them. Sums count them.
          </p>
        )}
      </figure>
      <Below state={state} facts={facts} device={device} byteUnit={byteUnit} />
    </>
  );
}

function isFiltered({ stream, pool, sizeClass }: SegmentsParams): boolean {
  return stream !== null || pool !== null || sizeClass !== null;
}

function Tools(
  props: MapPartProps & {
    readonly layout: SegmentLayout;
    readonly zoom: (sign: 1 | -1) => void;
    readonly asTable: boolean;
    readonly setAsTable: (asTable: boolean) => void;
    readonly source: ExportSource;
  },
) {
  const { view, params, facts, state, asTable, setAsTable } = props;
  const { setParams, byteUnit } = view;
  return (
    <div class="chart-bar segments-tools">
      <figcaption>
        Map{" "}
        <span class="quiet">
          {formatInteger(state.numSegments)} segments,{" "}
          {formatBytes(state.reservedBytes, byteUnit)}
        </span>
      </figcaption>
      <Choice
        label="Sort"
        value={params.sort}
        onChange={(sort) => setParams({ sort: sort === "size" ? null : sort })}
      >
        {SORTS.map((sort) => (
          <option key={sort} value={sort}>
            {SORT_WORDS[sort]}
          </option>
        ))}
      </Choice>
      <Choice
        label="Class"
        value={params.sizeClass ?? ""}
        onChange={(value) => setParams({ size_class: value === "" ? null : value })}
      >
        <option value="">all</option>
        <option value="small">small</option>
        <option value="large">large</option>
      </Choice>
      <RowChoice
        label="Stream"
        names={facts.streams}
        chosen={params.stream}
        onChoose={(stream) => setParams({ stream })}
      />
      <RowChoice
        label="Pool"
        names={facts.pools}
        chosen={params.pool}
        onChoose={(pool) => setParams({ pool })}
      />
      <Scale view={view} layout={props.layout} zoom={props.zoom} />
      <Segmented
        label="What colours say"
        options={["category", "state"] as const}
        chosen={params.fill}
        words={(fill) =>
          fill === "category"
            ? ["Category", "Live blocks in the colours of all pages"]
            : ["State", "Allocated, pending free and free alone"]
        }
        onChoose={(fill) => setParams({ fill: fill === "category" ? null : fill })}
      />
      <ChartButton
        label={asTable ? "View as picture" : "View as table"}
        icon={asTable ? "chart" : "table"}
        onClick={() => setAsTable(!asTable)}
      />
      <ExportMenu
        subject={`the map of ${formatInteger(state.numSegments)} segments`}
        source={props.source}
      />
    </div>
  );
}

/** How many bytes a line is: equal for all, finer or coarser, or each segment its own. */
function Scale({
  view,
  layout,
  zoom,
}: {
  readonly view: ViewProps;
  readonly layout: SegmentLayout;
  readonly zoom: (sign: 1 | -1) => void;
}) {
  const { setParams, byteUnit } = view;
  return (
    <span class="segments-scale">
      <Segmented
        label="Scale of the lines"
        options={["equal", "fit"] as const}
        chosen={layout.equalBytes === null ? "fit" : "equal"}
        words={(one) =>
          one === "equal"
            ? [
                "To scale",
                "A line is the same bytes for all; longer segments go on below",
              ]
            : ["Fill width", "Every segment fills its line, whatever its size"]
        }
        onChoose={(one) => setParams({ scale: one === "fit" ? "fit" : null })}
      />
      {layout.equalBytes !== null && (
        <>
          <ChartButton
            label="More bytes to a line (-; Ctrl and wheel)"
            icon="minus"
            onClick={() => zoom(-1)}
          />
          <span class="quiet">
            {formatBytes(layout.equalBytes, byteUnit).replace(/\.0+ /, " ")} a line
          </span>
          <ChartButton
            label="Fewer bytes to a line (+; Ctrl and wheel)"
            icon="plus"
            onClick={() => zoom(1)}
          />
        </>
      )}
    </span>
  );
}
