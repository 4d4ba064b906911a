/**
 * The flamegraph of what is live where the pointer is, or of what a range allocated, from
 * one side or from both.
 */

import { computed, signal, type ReadonlySignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import type { TableRows } from "../../../../api/types.gen";
import { formatBytes, formatBytesExact, formatInteger } from "../../../../base/bytes";
import { FRAME_WORDS, type CallStacks } from "../../../../model/stacks/call_stacks";
import { frameTotals } from "../../../../model/stacks/flame_tree";
import { atMoment } from "../../../../widgets/block_stack/axis";
import { rangeAround } from "../../../../widgets/block_stack/marks";
import type { XRange } from "../../../../widgets/plot/range";
import { Flame } from "../../../../widgets/flame/flame";
import {
  foundBytes,
  zoomedNode,
  type FlameData,
} from "../../../../widgets/flame/layout";
import { longestOf } from "../../../../widgets/row_table/columns";
import { Segmented, TextButton } from "../../../shared/controls/choices";
import { AnswerTable } from "../../../shared/table/answer_table";
import { filled } from "../../../shared/table/columns";
import { FLAME_BYTES, FLAMES, sandwichOf } from "../state";
import type { Blocks } from "../use_blocks";
import { Flames } from "./flames";
import { stacksInRange, type LiveStacks } from "./held";
import { MomentSlider } from "./moment_slider";

const HEIGHT_PX = 320;
const SIDES_GAP_PX = 28;
/** Title and export menu of the list. */
const FRAMES_HEAD_PX = 36;

interface PartProps {
  readonly of: Blocks;
  readonly stacks: CallStacks;
  readonly flames: Flames;
  readonly shown: ReadonlySignal<LiveStacks | null>;
}

export function FlamePanel(props: {
  readonly of: Blocks;
  readonly stacks: CallStacks;
  readonly before: LiveStacks | null;
}) {
  const { of, stacks, before } = props;
  const { state, actions, liveStacks, search, colours } = of;
  const { shown, title } = useShownStacks(of);
  const { flame: mode, frames, flameZoom: zoom } = state;
  const setZoom = (flameZoom: readonly number[]): void => actions.set({ flameZoom });
  const flames = useMemo(
    () => new Flames(stacks, frames, colours),
    [stacks, frames, colours],
  );
  const data = useMemo(
    () =>
      computed<FlameData | null>(() => {
        if (mode !== "difference") {
          return shown.value && flames.tree(shown.value, title);
        }
        const now = liveStacks.value;
        if (now === null) return null;
        return before === null ? null : flames.difference(before, now);
      }),
    [liveStacks, shown, title, flames, mode, before],
  );
  const zooms = mode !== "sandwich";
  return (
    <section class="flame-panel" aria-label="Bytes by stack">
      <div class="panel-head">
        <h2>Bytes by stack</h2>
        <Segmented
          label="Stack chart"
          chosen={mode}
          labels={FLAMES}
          onChoose={(flame) => actions.set({ flame, flameZoom: [] })}
        />
        <Segmented
          label="Frames shown"
          chosen={frames}
          labels={FRAME_WORDS}
          onChoose={(option) => actions.set({ frames: option, flameZoom: [] })}
        />
        {mode !== "difference" && <BytesChoice of={of} />}
        {zoom.length > 0 && zooms && (
          <TextButton press={() => setZoom([])}>Show all</TextButton>
        )}
        {zooms && search.frames !== null && (
          <Bytes
            of={of}
            prefix="found "
            data={data}
            bytesOf={(shown) => {
              const root = zoomedNode(shown.tree, zoom);
              return foundBytes(shown, search.frames ?? new Uint8Array(), root);
            }}
          />
        )}
      </div>
      <MomentSlider of={of} />
      {mode === "sandwich" ? (
        <Sandwich of={of} stacks={stacks} flames={flames} shown={shown} />
      ) : mode === "difference" && before === null ? (
        <p class="quiet flame-hint">
          {state.mark === null
            ? "Mark a moment to compare with: M marks the one at the cursor."
            : "Loading live memory at the marked moment…"}
        </p>
      ) : (
        <Flame
          {...flameProps(of, stacks)}
          label={
            mode === "tree"
              ? "Flamegraph of live bytes by stack"
              : "Flamegraph of the difference between two moments"
          }
          data={data}
          zoom={zoom}
          onZoom={setZoom}
          heightPx={HEIGHT_PX}
        />
      )}
      {mode === "difference" && before !== null && (
        <p class="row small quiet">
          <span class="swatch" style={{ background: "#1f6fc4" }} />
          less than {atMoment(before.moment)}{" "}
          <span class="swatch" style={{ background: "#c8600a" }} />
          more; boxes are as wide as the larger of the two
        </p>
      )}
    </section>
  );
}

/** Of the moment, and followed by the pointer, or of the range. */
function useShownStacks({ state, inRange, anchored, liveStacks }: Blocks) {
  const bytes = state.range === null ? "moment" : state.flameBytes;
  const { data: answer } = inRange;
  const categories = anchored?.categories;
  const ofRange = useMemo(
    () =>
      signal(
        bytes === "moment" || answer === null || categories === undefined
          ? null
          : stacksInRange(answer, bytes, categories),
      ),
    [bytes, answer, categories],
  );
  if (bytes === "moment") return { shown: liveStacks, title: undefined };
  const ends =
    answer === null
      ? ""
      : ` in events ${formatInteger(answer.e0)} to ${formatInteger(answer.e1 - 1)}`;
  const rest = bytes === "live" ? ", and live at its end" : "";
  return { shown: ofRange, title: `allocated${ends}${rest}` };
}

function BytesChoice({ of }: { readonly of: Blocks }) {
  const { state, actions, picture, device, anchor } = of;
  if (device.numEvents === 0) return null;
  return (
    <Segmented
      label="Bytes of"
      chosen={state.range === null ? "moment" : state.flameBytes}
      labels={FLAME_BYTES}
      onChoose={(flameBytes) => {
        const usual = (): XRange =>
          rangeAround(picture.marks, anchor, device.numEvents);
        const range = flameBytes === "moment" ? null : (state.range ?? usual());
        actions.set({ flameBytes, range, life: null });
      }}
    />
  );
}

function flameProps({ actions, search, view }: Blocks, stacks: CallStacks) {
  return {
    stacks,
    frameMatches: search.frames,
    onFrame: (frame: number) =>
      actions.set({ ...sandwichOf(frame), flame: "sandwich" }),
    theme: view.theme,
    byteUnit: view.byteUnit,
  };
}

/** A component of its own: only it renders while the pointer moves. */
function Bytes(props: {
  readonly of: Blocks;
  readonly prefix?: string;
  readonly data: ReadonlySignal<FlameData | null>;
  readonly bytesOf: (data: FlameData) => number;
}) {
  const { value: data } = props.data;
  if (data === null) return null;
  const bytes = props.bytesOf(data);
  return (
    <span class="quiet" title={formatBytesExact(bytes)}>
      {props.prefix}
      {formatBytes(bytes, props.of.view.byteUnit)}
    </span>
  );
}

function Sandwich(props: PartProps) {
  const { of, stacks, flames, shown } = props;
  const { frame, callersZoom, calleesZoom } = of.state;
  const sides = useMemo(() => {
    const side = (which: "callers" | "callees") =>
      computed(() =>
        shown.value === null || frame === null
          ? null
          : flames.side(shown.value, frame, which),
      );
    return { callers: side("callers"), callees: side("callees") };
  }, [shown, flames, frame]);
  if (frame === null || frame >= stacks.numFrames) return <FrameList {...props} />;
  const drawn = (which: "callers" | "callees", label: string) => (
    <Flame
      {...flameProps(of, stacks)}
      label={label}
      data={sides[which]}
      hideRoot
      upwards={which === "callers"}
      zoom={which === "callers" ? callersZoom : calleesZoom}
      onZoom={(zoom) =>
        of.actions.set(
          which === "callers" ? { callersZoom: zoom } : { calleesZoom: zoom },
        )
      }
      heightPx={(HEIGHT_PX - SIDES_GAP_PX) / 2}
    />
  );
  return (
    <div class="flame-sides">
      {drawn("callers", "What calls the frame")}
      <p class="row small" style={{ height: `${SIDES_GAP_PX}px` }}>
        <span class="quiet">callers above, callees below of</span>
        <b class="cut">{stacks.frameLabel(frame)}</b>
        <Bytes of={of} data={sides.callees} bytesOf={({ values }) => values[0] ?? 0} />
        <TextButton press={() => of.actions.set(sandwichOf(null))}>
          Choose another
        </TextButton>
      </p>
      {drawn("callees", "What the frame calls")}
    </div>
  );
}

/** All frames with their live bytes, to choose one of them. */
function FrameList({ of, stacks, flames, shown }: PartProps) {
  const { frames: matches } = of.search;
  const { value: now } = shown;
  const totals = useMemo(() => {
    if (now === null) return [];
    return frameTotals(flames.paths(now), now.stackBytes).filter(
      ({ frame }) => frame >= 0 && (matches === null || matches[frame] === 1),
    );
  }, [now, flames, matches]);
  const { frameTable: header } = of.open.facts;
  const table = useMemo(
    () => frameTable(header, totals, stacks),
    [header, totals, stacks],
  );
  return (
    <AnswerTable
      view={of.view}
      table={table}
      colours={FRAME_COLOURS}
      selected={null}
      onSelect={(row) => of.actions.set(sandwichOf(totals[row]?.frame ?? null))}
      heightPx={HEIGHT_PX - FRAMES_HEAD_PX}
      steady
    />
  );
}

const FRAME_COLOURS = { frame: "var(--link)" };

function frameTable(
  header: TableRows,
  totals: ReturnType<typeof frameTotals>,
  stacks: CallStacks,
): TableRows {
  const longest = longestOf(totals.map(({ totalBytes }) => totalBytes));
  return filled(header, totals.length, {
    total: {
      numbers: Float64Array.from(totals, ({ totalBytes }) => totalBytes),
      longest,
    },
    self: {
      numbers: Float64Array.from(totals, ({ selfBytes }) => selfBytes),
      longest,
    },
    frame: {
      texts: totals.map(({ frame }) => stacks.frameLabel(frame)),
      hints: totals.map(({ frame }) => {
        const { filename, line } = stacks.frame(frame);
        return `${filename}:${line}`;
      }),
    },
  });
}
