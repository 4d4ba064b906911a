/** The flamegraph of what is live where the pointer is, from one side or from both. */

import { computed, type ReadonlySignal } from "@preact/signals";
import { useMemo, useState } from "preact/hooks";
import { formatBytes, formatBytesExact, type ByteUnit } from "../../../../base/bytes";
import type { Theme } from "../../../../base/tokens";
import { FRAME_CHOICES, type CallStacks } from "../../../../model/stacks/call_stacks";
import { frameTotals } from "../../../../model/stacks/flame_sides";
import { atMoment } from "../../../../widgets/block_stack/axis";
import { Flame } from "../../../../widgets/flame/flame";
import { foundBytes, zoomedNode } from "../../../../widgets/flame/layout";
import type { FlameData } from "../../../../widgets/flame/types";
import { RowTable, type RowColumn } from "../../../../widgets/row_table/row_table";
import { barOf, bytesCell, numberColumn } from "../../../../widgets/row_table/columns";
import { useSort } from "../../../../widgets/row_table/use_sort";
import { Segmented } from "../../../shared/controls/choices";
import type { Flames, Held } from "../state/held";
import type { AllocationsParams, FlameMode } from "../state/params";

import { FRAME_WORDS } from "../../../../model/stacks/call_stacks";
import { MODE_WORDS } from "../words";

const MODES: readonly FlameMode[] = ["tree", "sandwich", "difference"];
const SIDES_GAP_PX = 28;

export interface FlamePanelProps {
  readonly held: ReadonlySignal<Held | null>;
  /** What was live at the marked moment; null while it is not marked or not known. */
  readonly before: Held | null;
  readonly stacks: CallStacks;
  readonly flames: Flames;
  /** By frame: 1 where it was searched for; null: nothing was. */
  readonly found: Uint8Array | null;
  readonly params: AllocationsParams;
  readonly setParams: (changes: Readonly<Record<string, string | null>>) => void;
  readonly theme: Theme;
  readonly byteUnit: ByteUnit;
  readonly heightPx: number;
}

export function FlamePanel(props: FlamePanelProps) {
  const { params, setParams, held, flames, before, stacks } = props;
  const [zoom, setZoom] = useState<readonly number[]>([]);
  const mode = params.flame;
  const data = useMemo(
    () =>
      computed<FlameData | null>(() => {
        const now = held.value;
        if (now === null) return null;
        if (mode !== "difference") return flames.tree(now);
        return before === null ? null : flames.difference(before, now);
      }),
    [held, flames, mode, before],
  );
  const chooseFrame = (frame: number | null): void =>
    setParams({
      frame: frame === null ? null : frame.toString(),
      flame: "sandwich",
    });
  return (
    <section class="flame-panel" aria-label="Live bytes by stack">
      <div class="panel-head">
        <h2>Live bytes by stack</h2>
        <Segmented
          label="How stacks are shown"
          options={MODES}
          chosen={mode}
          words={(one) => MODE_WORDS[one]}
          onChoose={(one) => {
            setZoom([]);
            setParams({ flame: one === "tree" ? null : one });
          }}
        />
        <Segmented
          label="Which frames are shown"
          options={FRAME_CHOICES}
          chosen={params.frames}
          words={(one) => FRAME_WORDS[one]}
          onChoose={(one) => {
            setZoom([]);
            setParams({ frames: one === "python" ? null : one });
          }}
        />
        {zoom.length > 0 && mode !== "sandwich" && (
          <button type="button" class="text-button" onClick={() => setZoom([])}>
            Show all
          </button>
        )}
        {mode !== "sandwich" && props.found !== null && (
          <Found
            data={data}
            found={props.found}
            zoom={zoom}
            byteUnit={props.byteUnit}
          />
        )}
      </div>
      {mode === "difference" && before === null ? (
        <p class="quiet flame-hint">
          {params.mark === null
            ? "Mark a moment to compare with: M marks the one at the cursor."
            : "Asking what was live at the marked moment…"}
        </p>
      ) : mode === "sandwich" ? (
        <Sandwich {...props} onFrame={chooseFrame} />
      ) : (
        <Flame
          label={
            mode === "tree"
              ? "Flamegraph of live bytes by stack"
              : "Flamegraph of the difference between two moments"
          }
          data={data}
          stacks={stacks}
          found={props.found}
          zoom={zoom}
          onZoom={setZoom}
          onFrame={chooseFrame}
          theme={props.theme}
          byteUnit={props.byteUnit}
          heightPx={props.heightPx}
        />
      )}
      {mode === "difference" && before !== null && (
        <p class="quiet flame-key">
          <span class="flame-key-less" /> less than {atMoment(before.moment)}
          <span class="flame-key-more" /> more; boxes are as wide as the larger of the
          two
        </p>
      )}
    </section>
  );
}

/** How much of what is shown was searched for. */
function Found(props: {
  readonly data: ReadonlySignal<FlameData | null>;
  readonly found: Uint8Array;
  readonly zoom: readonly number[];
  readonly byteUnit: ByteUnit;
}) {
  const data = props.data.value;
  if (data === null) return null;
  const root = zoomedNode(data.tree, props.zoom);
  const bytes = foundBytes(data, props.found, root);
  return (
    <span class="quiet" title={formatBytesExact(bytes)}>
      found {formatBytes(bytes, props.byteUnit)}
    </span>
  );
}

function Sandwich(
  props: FlamePanelProps & { readonly onFrame: (frame: number | null) => void },
) {
  const { params, held, flames, stacks, heightPx, byteUnit } = props;
  const { frame } = params;
  const [callersZoom, setCallersZoom] = useState<readonly number[]>([]);
  const [calleesZoom, setCalleesZoom] = useState<readonly number[]>([]);
  const sides = useMemo(
    () =>
      computed(() => {
        const now = held.value;
        return now === null || frame === null ? null : flames.sandwich(now, frame);
      }),
    [held, flames, frame],
  );
  const callers = useMemo(() => computed(() => sides.value?.callers ?? null), [sides]);
  const callees = useMemo(() => computed(() => sides.value?.callees ?? null), [sides]);
  if (frame === null || frame >= stacks.numFrames) {
    return <FrameList {...props} />;
  }
  const sideProps = {
    stacks,
    found: props.found,
    hideRoot: true,
    onFrame: props.onFrame,
    theme: props.theme,
    byteUnit,
    heightPx: (heightPx - SIDES_GAP_PX) / 2,
  } as const;
  return (
    <div class="flame-sides">
      <Flame
        {...sideProps}
        label="What calls the frame"
        data={callers}
        upwards
        zoom={callersZoom}
        onZoom={setCallersZoom}
      />
      <p class="flame-frame" style={{ height: `${SIDES_GAP_PX}px` }}>
        <span class="quiet">callers above, callees below of</span>
        <b>{stacks.frameLabel(frame)}</b>
        <FrameBytes data={callees} byteUnit={byteUnit} />
        <button type="button" class="text-button" onClick={() => props.onFrame(null)}>
          Choose another
        </button>
      </p>
      <Flame
        {...sideProps}
        label="What the frame calls"
        data={callees}
        zoom={calleesZoom}
        onZoom={setCalleesZoom}
      />
    </div>
  );
}

function FrameBytes(props: {
  readonly data: ReadonlySignal<FlameData | null>;
  readonly byteUnit: ByteUnit;
}) {
  const bytes = props.data.value?.values[0] ?? 0;
  return (
    <span title={formatBytesExact(bytes)}>{formatBytes(bytes, props.byteUnit)}</span>
  );
}

const BY_TOTAL = { key: "total", descending: true };

/** All frames with what they hold, to choose one of them. */
function FrameList(
  props: FlamePanelProps & { readonly onFrame: (frame: number | null) => void },
) {
  const { held, flames, stacks, byteUnit, found } = props;
  const [word, setWord] = useState<string | null>(null);
  const now = held.value;
  const totals = useMemo(() => {
    if (now === null) return [];
    const all = frameTotals(flames.paths(now), now.bytes);
    return all.filter(
      ({ frame }) => frame >= 0 && (found === null || found[frame] === 1),
    );
  }, [now, flames, found]);
  const columns = useMemo((): readonly RowColumn[] => {
    const most = totals[0]?.totalBytes ?? 0;
    const bytes = (value: number) => ({
      ...bytesCell(value, byteUnit),
      bar: barOf(value, most, "var(--link)"),
    });
    const own = totals.map(({ selfBytes }) => selfBytes);
    const all = totals.map(({ totalBytes }) => totalBytes);
    return [
      numberColumn(
        "total",
        "Total",
        "84px",
        all,
        bytes,
        "Of all stacks that hold the frame",
      ),
      numberColumn("self", "Self", "84px", own, bytes, "Of stacks that end in it"),
      {
        key: "frame",
        title: "Frame; click for its callers and callees",
        numeric: false,
        width: "minmax(120px, 1fr)",
        cell: (row) => {
          const frame = totals[row]?.frame ?? -1;
          const { filename, line } = stacks.frame(frame);
          return { text: stacks.frameLabel(frame), title: `${filename}:${line}` };
        },
      },
    ];
  }, [totals, stacks, byteUnit]);
  const sorted = useSort(columns, totals.length, BY_TOTAL, word ?? undefined, setWord);
  return (
    <RowTable
      label="Frames"
      columns={columns}
      {...sorted}
      selected={null}
      onSelect={(row) => props.onFrame(totals[row]?.frame ?? null)}
      empty="No frame is found."
      heightPx={props.heightPx}
      steady
    />
  );
}
