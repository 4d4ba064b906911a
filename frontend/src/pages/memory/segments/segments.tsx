/**
 * Segments: where every block lies in the allocator's segments at any moment, what is
 * free, for whom, and what keeps it; segments over time; the events one after another.
 */

import { useMemo, useRef } from "preact/hooks";
import { type Query } from "../../../api/client";
import { useCommands } from "../../../base/use_commands";
import { originOf } from "../../../model/words/origin";
import { atMoment, BlockAxis } from "../../../widgets/block_stack/axis";
import { drawnMarks, nextMark } from "../../../widgets/block_stack/marks";
import type { ExportSource } from "../../../widgets/export/source";
import { Icon } from "../../../widgets/icon/icon";
import {
  clampedMoment,
  rangeHolding,
  wholeRange,
  zoomedRange,
} from "../../../widgets/scrubber/place";
import { Scrubber } from "../../../widgets/scrubber/scrubber";
import { Skeleton, Waiting } from "../../../widgets/state/state";
import { BlockDrawer } from "../history/block_drawer";
import { Segmented } from "../../shared/controls/choices";
import { HistoryFrame, type OpenHistory } from "../history/frame";
import { momentWords } from "../history/moment";
import { useStacks } from "../history/use_history";
import type { ViewProps } from "../../shared/view_props";
import { segmentCommands } from "./commands";
import { EventList } from "./events/list";
import { MapPart } from "./map";
import { OverTime } from "./over_time";
import { PARTS, rangeWords, readSegments, type SegmentsParams } from "./state/params";
import { SegmentDrawer } from "./segment_drawer";
import { pinWords } from "./state/why";
import { pinnersTable } from "./why";
import { Transport, type TransportActions } from "./transport";
import { useMoment, useStates } from "./state/states";
import { usePlaying } from "./state/playing";
import { PART_WORDS } from "./words";
import { SAME_RUN } from "../history/params";
import "./segments.css";

const EVENTS_PX = 560;
const ZOOM_STEP = 0.5;

export function SegmentsView(props: ViewProps) {
  const params = useMemo(() => readSegments(props.params), [props.params]);
  const parts = (
    <Segmented
      label="What is shown"
      options={PARTS}
      chosen={params.part}
      words={(part) => PART_WORDS[part]}
      onChoose={(part) =>
        props.setParams({ part: part === "map" ? null : part }, "push")
      }
    />
  );
  return (
    <HistoryFrame
      view={props}
      history={params.history}
      device={params.device}
      tools={parts}
    >
      {(open) => (
        <OfDevice
          key={`${open.answer.reference.id} ${open.device.device}`}
          view={props}
          params={params}
          open={open}
        />
      )}
    </HistoryFrame>
  );
}

function OfDevice({
  view,
  params,
  open,
}: {
  readonly view: ViewProps;
  readonly params: SegmentsParams;
  readonly open: OpenHistory;
}) {
  const { client, theme, byteUnit, setParams } = view;
  const { answer, facts, device } = open;
  const history = answer.reference.id;
  const { numEvents } = device;
  const { stream, pool, sizeClass, sort, request } = params;
  const place = useMemo<Query>(
    () => ({ run: view.run.id, history, device: device.device }),
    [view.run.id, history, device.device],
  );
  const asked = useMemo<Query>(
    () => ({ ...place, stream, pool, size_class: sizeClass, sort, request }),
    [place, stream, pool, sizeClass, sort, request],
  );
  const shownIn = { history, device };
  const [moment, setMoment] = useMoment(params, shownIn, view);
  const { loader, state, error } = useStates(client, asked, moment);
  const at = clampedMoment(moment, numEvents);
  const axis = useMemo(() => new BlockAxis(device, "event"), [device]);
  const marks = useMemo(() => drawnMarks(device.marks, axis), [device, axis]);
  const { stacks } = useStacks(client, view.run.id, history);
  const exporter = useRef<ExportSource | null>(null);
  const range = params.range;
  const show = (next: number): void => {
    setMoment(clampedMoment(next, numEvents));
    if (range === null) return;
    const holding = rangeHolding(range, next, numEvents);
    if (holding !== range) setParams(rangeWords(holding));
  };
  const playing = usePlaying({ loader, moment: at, range, numEvents, show });
  const go = (next: number): void => {
    playing.stop();
    show(next);
  };
  const ooms = marks.points.filter(({ kind }) => kind === "oom");
  const actions: TransportActions = {
    step: (by) => go(at + by),
    toPeak: () => {
      const peak = device.peaks.find(({ level }) => level === "reserved");
      if (peak !== undefined) go(peak.moment);
    },
    toOom: () => {
      const next = ooms.find((one) => one.moment > at) ?? ooms[0];
      if (next === undefined) view.say("No out-of-memory error is in this history");
      else go(next.moment);
    },
    toMark: (side) => {
      const next = nextMark(marks, at, side);
      if (next !== null) go(next);
      else view.say(side > 0 ? "No later mark" : "No earlier mark");
    },
    goTo: go,
    zoom: (sign) => {
      const shown = range ?? wholeRange(numEvents);
      const factor = sign < 0 ? ZOOM_STEP : 1 / ZOOM_STEP;
      setParams(rangeWords(zoomedRange(shown, at + 0.5, factor, numEvents)));
    },
    fit: () => setParams(rangeWords(null)),
  };
  function clear(): void {
    if (playing.playing) playing.stop();
    else if (params.life !== null) setParams({ life: null });
    else if (params.segment !== null) setParams({ segment: null });
    else if (params.request !== null) setParams({ request: null });
    else if (params.range !== null) setParams(rangeWords(null));
  }
  const label = labelOf(open);
  useCommands(view.commands, () =>
    segmentCommands({
      actions,
      play: playing.toggle,
      clear,
      source: exporter.current,
      pinners:
        state === null
          ? null
          : {
              origin: originOf(view.run),
              name: `${label} kept open by`,
              table: () => pinnersTable(state, stacks),
              about: () => ({ device: device.device, moment: state.moment.moment }),
            },
      openAllocations: () => view.showPage("blocks", momentWords(at, shownIn)),
      compare: () =>
        view.showPage("compare", {
          part: null,
          history,
          history_device: device.device.toString(),
          moment: at.toString(),
          a_run: SAME_RUN,
          a_history: null,
        }),
      say: view.say,
    }),
  );
  return (
    <>
      {numEvents > 0 && (
        <section class="segments-moment" aria-label="Moment">
          <Transport
            device={device}
            moment={at}
            state={state}
            playing={playing.playing}
            onPlay={playing.toggle}
            actions={actions}
            hasOom={ooms.length > 0}
            hasMarks={marks.points.length + marks.spans.length > 0}
            byteUnit={byteUnit}
          />
          {params.part !== "time" && (
            <Scrubber
              label="Moment of the history"
              device={device}
              axis={axis}
              marks={marks}
              moment={at}
              range={range}
              words={atMoment(at)}
              onMoment={go}
              onRange={(next) => setParams(rangeWords(next))}
              theme={theme}
              byteUnit={byteUnit}
            />
          )}
        </section>
      )}
      {numEvents === 0 && (
        <p class="segments-note">
          <Icon name="info" /> This history holds no events: the segments are those of
          the moment it was taken.
        </p>
      )}
      <Waiting
        error={error}
        hasContent={state !== null}
        note="It is asked again by itself."
      />
      {params.part === "map" && state === null && error === null && (
        <Skeleton heightPx={520} />
      )}
      {params.part === "map" && state !== null && (
        <MapPart
          view={view}
          params={params}
          facts={facts}
          device={device}
          state={state}
          stacks={stacks}
          label={label}
          exporter={exporter}
        />
      )}
      {params.part === "time" && (
        <OverTime
          view={view}
          device={device}
          place={place}
          stacks={stacks}
          moment={at}
          onMoment={go}
          label={`${label} over time`}
          exporter={exporter}
        />
      )}
      {params.part === "events" && (
        <EventList
          client={client}
          place={place}
          facts={facts}
          firstMs={device.firstMs}
          stacks={stacks}
          moment={at}
          onMoment={go}
          onLife={(life, event) => {
            go(event);
            setParams({ life: life.toString() });
          }}
          choice={params.events}
          onChoice={(choice) => setParams({ events: choice === "all" ? null : choice })}
          byteUnit={byteUnit}
          heightPx={EVENTS_PX}
        />
      )}
      {state?.oddities.map(({ what, count }) => (
        <p key={what} class="segments-note quiet">
          <Icon name="info" sizePx={14} /> {count} {what}
        </p>
      ))}
      {params.life !== null && (
        <BlockDrawer
          {...{ view, facts, stacks, at: shownIn, life: params.life, moment: at }}
          litStack={null}
          onLife={(life) => setParams({ life: life === null ? null : life.toString() })}
          onMoment={go}
          onStack={(stack) =>
            view.showPage("blocks", {
              ...momentWords(at, shownIn),
              stack: stack === null ? null : stack.toString(),
            })
          }
          links={
            <button
              type="button"
              class="text-button"
              title="Show this block among all others, at this moment"
              onClick={() =>
                view.showPage("blocks", {
                  ...momentWords(at, shownIn),
                  life: (params.life ?? 0).toString(),
                })
              }
            >
              Show in Blocks
            </button>
          }
        />
      )}
      {params.life === null && params.segment !== null && state !== null && (
        <SegmentDrawer
          state={state}
          address={params.segment}
          facts={facts}
          stacks={stacks}
          pinned={pinWords(state, stacks, byteUnit).get(params.segment) ?? ""}
          onMoment={go}
          byteUnit={byteUnit}
          close={() => setParams({ segment: null })}
        />
      )}
    </>
  );
}

function labelOf({ answer, device, facts }: OpenHistory): string {
  const { rank } = answer.reference;
  const ofRank = rank === null ? "" : `, rank ${rank}`;
  return `Segments${ofRank}${facts.devices.length > 1 ? `, device ${device.device}` : ""}`;
}
