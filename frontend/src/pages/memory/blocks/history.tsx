/** One device of an open history: its picture, beside it the inspector, below the stacks. */

import type { Signal } from "@preact/signals";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { type Query } from "../../../api/client";
import type {
  HistoryDevice,
  HistoryFacts,
  HistoryResponse,
} from "../../../api/types.gen";
import { useOnce } from "../../../api/use_once";
import { useCommands } from "../../../base/use_commands";
import { originOf } from "../../../model/words/origin";
import type { Viewport } from "../../../render/viewport";
import { BlockAxis } from "../../../widgets/block_stack/axis";
import type { BlockController } from "../../../widgets/block_stack/controller";
import { drawnMarks, withFiner } from "../../../widgets/block_stack/marks";
import type { ExportSource } from "../../../widgets/export/source";
import { Icon } from "../../../widgets/icon/icon";
import { Waiting } from "../../../widgets/state/state";
import type { ViewProps } from "../../shared/view_props";
import { BlockDrawer } from "../history/block_drawer";
import { allocationCommands, type StackFile } from "./commands";
import {
  exactly,
  lineRows,
  siteOf,
  stackCategories,
  useHeld,
  type Held,
} from "./state/held";
import { exactGroups } from "./held/ledger_bar";
import { Holders, HeldStacks } from "./held/panels";
import { momentActions } from "./moment_actions";
import {
  firstMoment,
  momentWords,
  pinnedMoment,
  type MomentPlace,
} from "../history/moment";
import type { AllocationsParams } from "./state/params";
import { foundWords, type Found } from "./found";
import { Picture } from "./picture";
import { RangeDrawer } from "./range_drawer";
import { stackFiles } from "./held/stack_files";
import { useSearch } from "./state/search";
import { useCulprits, useStacks } from "../history/use_history";
import { lookAt } from "../tiles/block_source";
import { useTiles } from "../tiles/use_tiles";
import type { TileSubject } from "../tiles/wanted";
import { topOf, useViewWords } from "./state/view_words";
import { HistoryNotes } from "../history/notes";
import { historyNotes } from "../history/words";

/** What stands above and below the picture in the frame, and how high it gets. */
const AROUND_PX = 420;
const LEAST_PX = 220;
const MOST_PX = 460;
/** The top holders, from their heading to the end of the picture's column. */
const HOLDERS_PX = 218;

export interface HistoryProps {
  readonly view: ViewProps;
  readonly params: AllocationsParams;
  readonly answer: HistoryResponse;
  readonly facts: HistoryFacts;
  readonly device: HistoryDevice;
  /** Told what the search found. */
  readonly found: Signal<Found>;
  readonly findBox: { current: HTMLInputElement | null };
}

export function History(props: HistoryProps) {
  const { view, answer, facts, device } = props;
  const { client, theme, byteUnit, setParams } = view;
  const history = answer.reference.id;
  const shownIn: MomentPlace = { history, device };
  const params = { ...props.params, moment: pinnedMoment(props.params, shownIn) };
  const device_ = device.device;
  const { stream, pool } = params;
  const place = useMemo<Query>(
    () => ({ run: view.run.id, history, device: device_, stream, pool }),
    [view.run.id, history, device_, stream, pool],
  );
  const axis = useMemo(() => new BlockAxis(device, params.axis), [device, params.axis]);
  const { order } = params;
  const subject = useMemo<TileSubject>(
    () => ({
      what: "allocations",
      place,
      axis: axis.kind,
      order,
      colour: params.colour,
    }),
    [place, axis.kind, order, params.colour],
  );
  const tiles = useTiles(client, subject);
  const ofPart = tiles.tiles.at(-1)?.answer.marks ?? null;
  const marks = useMemo(
    () => drawnMarks(withFiner(device.marks, ofPart), axis),
    [device, axis, ofPart],
  );
  const [controller, setController] = useState<BlockController | null>(null);
  const { stacks, error: stacksError } = useStacks(client, view.run.id, history);
  const search = useSearch(params.find, stacks);
  const anchor = params.moment ?? firstMoment(device);
  const now = useHeld(client, place, anchor, controller, tiles);
  const markQuery = params.mark === null ? null : { ...place, moment: params.mark };
  const marked = useOnce(client, "allocation_live", markQuery);
  const before =
    params.mark !== null && marked.data?.moment === params.mark
      ? exactly(marked.data)
      : null;
  const [whole] = tiles.tiles;
  const isPart = stream !== null || pool !== null;
  const topBytes = useMemo(
    () => topOf(device, isPart ? (whole ?? null) : null),
    [device, isPart, whole],
  );
  const culprits = useCulprits(view, answer.reference.rank);
  const site = useMemo(() => siteOf(whole ?? null), [whole]);
  const lines = useMemo(() => ({ site, culprits }), [site, culprits]);
  const rowOfLine = useMemo(
    () => (stacks === null ? undefined : lineRows(stacks, lines)),
    [stacks, lines],
  );
  const categories = useMemo(
    () => stackCategories(whole ?? null, [now.live, now.anchored], rowOfLine),
    [whole, now.live, now.anchored, rowOfLine],
  );
  const exact = useMemo(
    () => exactGroups(now.anchored, whole ?? null, stacks, lines),
    [now.anchored, whole, stacks, lines],
  );
  const { found, findBox } = props;
  useEffect(() => {
    found.value = foundWords(tiles.tiles, search, byteUnit);
  }, [found, tiles.tiles, search, byteUnit]);
  const heightPx = usePictureHeight();
  const tellAddress = useViewWords(controller, params, view);
  const exporter = useRef<ExportSource | null>(null);
  const label = pictureLabel(answer, device, facts);

  function onView(seen: Viewport, settled: boolean): void {
    if (controller === null) return;
    lookAt(tiles, controller, seen, settled);
    tellAddress(seen);
  }
  const { pin, shownMoment, actions, clear } = momentActions({
    view,
    params,
    place: shownIn,
    controller,
    marks,
    anchor,
  });
  const held = now.held;
  const filesOf = (shown: Held | null): readonly StackFile[] => {
    if (shown === null || stacks === null) return [];
    return stackFiles(shown, stacks, params.frames, originOf(view.run), label);
  };
  useCommands(view.commands, () =>
    allocationCommands({
      controller,
      axis,
      marks,
      moment: shownMoment(),
      actions,
      pin,
      clear,
      find: () => findBox.current?.select(),
      source: exporter.current,
      files: filesOf(held.peek()),
      say: view.say,
    }),
  );

  const notes = useMemo(
    () => historyNotes(facts, device, byteUnit),
    [facts, device, byteUnit],
  );
  const range = params.range;
  const rangeShown = useMemo(
    () =>
      range === null
        ? null
        : { low: axis.xAfter(range.low - 1), high: axis.xAfter(range.high - 1) },
    [axis, range?.low, range?.high],
  );
  const onStack = (stack: number | null): void =>
    setParams({ stack: stack === null ? null : stack.toString() });
  const failure = tiles.error;
  const ofHeld = {
    ...{ held, stacks, categories, search, params, theme, byteUnit },
    waits: stacksError === null,
  };
  return (
    <>
      <Waiting
        error={failure}
        hasContent={tiles.tiles.length > 0}
        note="It is asked again by itself."
      />
      {device.numBefore === device.numAllocations && <NoEvents />}
      <div class="inspected">
        <Picture
          run={view.run}
          client={client}
          place={place}
          facts={facts}
          label={label}
          device={device}
          axis={axis}
          marks={marks}
          topBytes={topBytes}
          tiles={tiles.tiles}
          stacks={stacks}
          only={params.only}
          onOnly={(only) => setParams({ only })}
          found={search.blocks}
          moment={params.moment}
          life={params.life}
          marked={params.mark}
          stack={params.stack}
          range={rangeShown}
          onView={onView}
          onPin={(hover) =>
            setParams({
              ...momentWords(hover.moment, shownIn),
              life: hover.block === null ? null : hover.block.life.toString(),
            })
          }
          onRange={(low, high) => {
            const from = Math.max(0, axis.momentAt(low));
            const to = Math.max(from + 1, axis.momentAt(high) + 1);
            setParams({ r0: from.toString(), r1: to.toString(), life: null });
          }}
          theme={theme}
          byteUnit={byteUnit}
          heightPx={heightPx}
          culprits={culprits}
          loading={tiles.loading}
          onReady={setController}
          controller={controller}
          actions={actions}
          hasOom={marks.points.some(({ kind }) => kind === "oom")}
          anchor={anchor}
          anchored={now.anchored}
          exact={exact}
          note={tiles.tiles.length === 0 ? "drawing…" : ""}
          exporter={exporter}
          about={{
            history,
            device: device.device,
            order,
            colour: params.colour,
            axis: axis.kind,
          }}
        />
        <aside class="inspector" aria-label="Inspector">
          {params.life === null && range === null && (
            <Holders
              {...ofHeld}
              live={now.live}
              device={device}
              lines={lines}
              filesOf={filesOf}
              onStack={onStack}
              heightPx={HOLDERS_PX}
            />
          )}
          {params.life !== null && (
            <BlockDrawer
              client={client}
              place={{ run: view.run.id, history, device: device.device }}
              life={params.life}
              moment={params.moment}
              facts={facts}
              device={device}
              stacks={stacks}
              litStack={params.stack}
              culprits={culprits}
              theme={theme}
              byteUnit={byteUnit}
              onLife={(life) => setParams({ life: life.toString() })}
              onMoment={pin}
              onStack={onStack}
              links={
                <button
                  type="button"
                  class="text-button"
                  title="Where it lies in its segment, at this moment"
                  onClick={() =>
                    view.showPage("segments", {
                      part: null,
                      moment: shownMoment().toString(),
                    })
                  }
                >
                  Show in its segment
                </button>
              }
              close={() => setParams({ life: null })}
            />
          )}
          {params.life === null && range !== null && (
            <RangeDrawer
              client={client}
              place={place}
              low={range.low}
              high={range.high}
              stacks={stacks}
              found={search.stacks}
              litStack={params.stack}
              theme={theme}
              byteUnit={byteUnit}
              onStack={onStack}
              onMoment={pin}
              onZoom={() => {
                if (controller === null || rangeShown === null) return;
                const { low, high } = rangeShown;
                controller.setView({ ...controller.view, x0: low, x1: high });
              }}
              close={() => setParams({ r0: null, r1: null })}
            />
          )}
        </aside>
      </div>
      <Waiting error={stacksError} hasContent={stacks !== null} />
      <HeldStacks {...ofHeld} before={before} setParams={setParams} />
      <HistoryNotes notes={notes} tone="quiet" />
    </>
  );
}

/** As high as the frame leaves room for, so that the legend stays in sight. */
function usePictureHeight(): number {
  const [framePx, setFramePx] = useState(window.innerHeight);
  useEffect(() => {
    // A hidden TensorBoard tab gives its iframe no size.
    const follow = (): void => setFramePx((px) => window.innerHeight || px);
    window.addEventListener("resize", follow);
    return () => window.removeEventListener("resize", follow);
  }, []);
  return Math.min(Math.max(framePx - AROUND_PX, LEAST_PX), MOST_PX);
}

function pictureLabel(
  { reference }: HistoryResponse,
  { device }: HistoryDevice,
  { devices }: HistoryFacts,
): string {
  const rank = reference.rank === null ? "" : `, rank ${reference.rank}`;
  const number = devices.length > 1 ? `, device ${device}` : "";
  return `Active memory${rank}${number}`;
}

function NoEvents() {
  return (
    <p class="allocations-note">
      <Icon name="info" /> No allocation happened in this history: only what was live
      when it was taken is known. Give torch.cuda.memory._record_memory_history a
      max_entries, or collector.record history=True, before the memory is allocated.
    </p>
  );
}
