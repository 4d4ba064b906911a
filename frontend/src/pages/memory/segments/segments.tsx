import { useMemo } from "preact/hooks";
import { type Query } from "../../../api/client";
import type { HistoryFacts } from "../../../api/types.gen";
import { formatInteger } from "../../../base/bytes";
import { commandsOf, useCommands, type CommandRow } from "../../../base/commands";
import { atMoment, BlockAxis } from "../../../widgets/block_stack/axis";
import { drawnMarks } from "../../../widgets/block_stack/marks";
import { Icon } from "../../../widgets/icon/icon";
import { rangeAround } from "../../../widgets/plot/range";
import { Facts } from "../../../widgets/facts/facts";
import {
  clampedMoment,
  wholeRange,
  zoomedRange,
} from "../../../widgets/scrubber/place";
import { Scrubber } from "../../../widgets/scrubber/scrubber";
import { Skeleton, Waiting } from "../../../widgets/state/state";
import { Choice, RowChoice, Switch } from "../../shared/controls/choices";
import { usePageState } from "../../shared/page_state";
import type { ViewProps } from "../../shared/view_props";
import { HistoryFrame } from "../history/frame";
import { momentActions, momentWords, readMemory } from "../history/moment";
import { useCulprits, useMoment, useStacks } from "../history/use_history";
import { pictureLabel } from "../history/text";
import { EventList } from "./events";
import { Inspector } from "./inspector";
import { SegmentMap } from "./map/map";
import { MomentBar, useStates } from "./moment";
import { OverTime } from "./over_time";
import { Why } from "./panels";
import { SEGMENTS, type SegmentsState, type OpenSegments } from "./params";
import "./segments.css";

const ZOOM_STEP = 0.5;

const SORTS: Readonly<Record<SegmentsState["sort"], string>> = {
  size: "largest first",
  address: "address",
  free: "most free first",
  largest_free: "largest free block first",
  age: "oldest first",
};

export function SegmentsView(props: ViewProps) {
  const [params, setParams] = usePageState(props, SEGMENTS);
  const { history, device } = readMemory(props.params);
  return (
    <HistoryFrame
      view={props}
      history={history}
      device={device}
      tools={(open) => (
        <>
          <Switch view={props} of={SEGMENTS.part} label="What is shown" />
          {open !== null && params.part === "map" && (
            <Filters params={params} setParams={setParams} facts={open.facts} />
          )}
        </>
      )}
    >
      {(open) => (
        <OfDevice view={props} params={params} setParams={setParams} open={open} />
      )}
    </HistoryFrame>
  );
}

function OfDevice({
  view,
  params,
  setParams,
  open,
}: Pick<OpenSegments, "view" | "params" | "setParams" | "open">) {
  const { client, theme, byteUnit } = view;
  const { answer, facts, device, momentPlace: shownIn, place } = open;
  const { numEvents } = device;
  const { stream, pool, sizeClass, sort, request, part, range } = params;
  const asked: Query = { ...place, stream, pool, size_class: sizeClass, sort, request };
  const [moment, setMoment] = useMoment(view, shownIn);
  const axis = useMemo(() => new BlockAxis(device, "event"), [device]);
  const marks = useMemo(() => drawnMarks(device.marks, axis), [device, axis]);
  const { stacks } = useStacks(client, view.run.id, shownIn.history);
  const culprits = useCulprits(view, answer.reference.rank);
  const isChosen = params.life !== null || params.segment !== null;
  const show = (next: number): void => {
    setMoment(clampedMoment(next, numEvents));
    const holding = rangeAround(range, next + 0.5, wholeRange(numEvents));
    if (holding !== range) setParams({ range: holding });
  };
  const states = useStates({ client, asked, moment, range, numEvents, show });
  const { state } = states;
  const go = (next: number): void => {
    states.stop();
    show(next);
  };
  const { ooms, toMark, ...acts } = momentActions({
    view,
    momentPlace: shownIn,
    marks,
    level: "reserved",
    mark: null,
    pinned: moment,
    go,
    shown: () => moment,
  });
  const zoom = (factor: number) => () =>
    setParams({
      range: zoomedRange(
        range ?? wholeRange(numEvents),
        moment + 0.5,
        factor,
        numEvents,
      ),
    });
  function clear(): void {
    if (states.playing) states.stop();
    else if (params.life !== null) setParams({ life: null });
    else if (params.segment !== null) setParams({ segment: null });
    else if (request !== null) setParams({ request: null });
    else setParams({ range: null });
  }
  const commands: readonly CommandRow[] = [
    ["play", "Play or pause", states.toggle, " "],
    ["earlier", "One event back", () => go(moment - 1), "ArrowLeft"],
    ["later", "One event on", () => go(moment + 1), "ArrowRight"],
    ["much-earlier", "Ten events back", () => go(moment - 10), "Shift+ArrowLeft"],
    ["much-later", "Ten events on", () => go(moment + 10), "Shift+ArrowRight"],
    ["peak", "Go to the peak of reserved memory", acts.toPeak, "p"],
    ["oom", "Go to the next out-of-memory error", acts.toOom],
    ["before", "Previous mark", () => toMark(-1), "["],
    ["after", "Next mark", () => toMark(1), "]"],
    ["in", "Zoom into the events", zoom(ZOOM_STEP), "w"],
    ["out", "Zoom out of the events", zoom(1 / ZOOM_STEP), "s"],
    ["fit", "Show all events", () => setParams({ range: null }), "f"],
    [
      "blocks",
      "Show this moment in Blocks",
      () => view.showPage("blocks", momentWords(moment, shownIn)),
    ],
    ["compare", "Compare this moment with another", acts.compare],
    ["clear", "Clear the selection", clear, "Escape"],
  ];
  const label = pictureLabel("Segments", open);
  const shown: OpenSegments | null = state && {
    view,
    params,
    setParams,
    open,
    moment,
    go,
    state,
    stacks,
    culprits,
    label,
  };
  useCommands(view.commands, () => commandsOf("segments", "Segments", commands));
  return (
    <>
      {numEvents > 0 ? (
        <section aria-label="Moment">
          <MomentBar
            device={device}
            moment={moment}
            state={state}
            playing={states.playing}
            commands={commands}
            onMoment={go}
            hasOom={ooms.length > 0}
            hasMarks={marks.points.length + marks.spans.length > 0}
            byteUnit={byteUnit}
          />
          {part !== "time" && (
            <Scrubber
              label="Moment of the history"
              device={device}
              axis={axis}
              marks={marks}
              moment={moment}
              range={range}
              valueText={atMoment(moment)}
              onMoment={go}
              onRange={(next) => setParams({ range: next })}
              theme={theme}
              byteUnit={byteUnit}
            />
          )}
        </section>
      ) : (
        <p>
          <Icon name="info" /> This history holds no events: the segments are those of
          the moment it was taken.
        </p>
      )}
      <Waiting
        error={states.error}
        hasContent={state !== null}
        note="MemBoard retries automatically."
      />
      {state === null && states.error === null && <Skeleton heightPx={520} />}
      {shown !== null && (
        <div class={part === "map" || isChosen ? "inspected" : ""}>
          <div class="column segments-main">
            {part === "map" && (
              <>
                <Why {...shown} />
                {shown.state.segments.address.length > 0 ? (
                  <SegmentMap {...shown} />
                ) : (
                  <p class="quiet">No segment passes the filter at this moment.</p>
                )}
              </>
            )}
            {part === "time" && <OverTime {...shown} />}
            {part === "events" && <EventList {...shown} />}
          </div>
          <Inspector {...shown} />
        </div>
      )}
      {state?.oddities.map(({ what: sentence, count }) => (
        <p key={sentence} class="quiet">
          <Icon name="info" sizePx={14} /> The file contradicts itself: {sentence} (
          {count})
        </p>
      ))}
      <Settings facts={facts} />
    </>
  );
}

function Settings({ facts: { settings } }: { readonly facts: HistoryFacts }) {
  return (
    <details>
      <summary>
        Allocator settings{" "}
        <span class="quiet">
          {settings.length === 0
            ? "not recorded in this file: snapshots of torch 2.1 and later contain them"
            : `${formatInteger(settings.length)} as torch names them`}
        </span>
      </summary>
      <Facts
        label="Allocator settings"
        rows={settings.map(({ name, value }) => [
          <code>{name}</code>,
          <code>{value || "not set"}</code>,
        ])}
      />
    </details>
  );
}

function Filters({
  params,
  setParams,
  facts,
}: Pick<OpenSegments, "params" | "setParams"> & { readonly facts: HistoryFacts }) {
  return (
    <>
      <Choice
        label="Sort"
        value={params.sort}
        of={Object.entries(SORTS)}
        onChange={(sort) => setParams({ sort: sort as SegmentsState["sort"] })}
      />
      <Choice
        label="Class"
        value={params.sizeClass ?? ""}
        of={[
          ["", "all"],
          ["small", "small"],
          ["large", "large"],
        ]}
        onChange={(value) =>
          setParams({ sizeClass: value === "" ? null : (value as "small") })
        }
      />
      {(["stream", "pool"] as const).map((key) => (
        <RowChoice
          key={key}
          label={key === "stream" ? "Stream" : "Pool"}
          names={facts[`${key}s`]}
          chosen={params[key]}
          onChoose={(row) => setParams({ [key]: row })}
        />
      ))}
    </>
  );
}
