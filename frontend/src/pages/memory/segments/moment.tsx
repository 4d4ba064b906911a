import { useEffect, useRef, useState } from "preact/hooks";
import type { Client, Query } from "../../../api/client";
import {
  ACTION_WORDS,
  type HistoryDevice,
  type SegmentsResponse,
} from "../../../api/types.gen";
import { formatBytes, formatInteger, type ByteUnit } from "../../../base/bytes";
import type { CommandRow } from "../../../base/commands";
import { momentText } from "../../../widgets/block_stack/axis";
import { IconButton, type IconName } from "../../../widgets/icon/icon";
import { ZoomButtons } from "../../../widgets/plot/chart_frame";
import type { XRange } from "../../../widgets/plot/range";
import { clampedMoment, playStep, wholeRange } from "../../../widgets/scrubber/place";
import { TextButton } from "../../shared/controls/choices";
import { EventField } from "../../shared/controls/event_field";
import { useAnswers } from "./answers";

const FRAMES_PER_SECOND = 12;
/** Playback time of the visible range, whatever its length. */
const SECONDS = 20;
const STEPS_AHEAD = 4;

/** During playback each state is shown once it arrives. */
export function useStates(of: {
  readonly client: Client;
  /** run, history, device, filters and order. */
  readonly asked: Query;
  readonly moment: number;
  readonly range: XRange | null;
  readonly numEvents: number;
  readonly show: (moment: number) => void;
}) {
  const { client, asked, moment, numEvents, show } = of;
  const [playing, setPlaying] = useState(false);
  const range = of.range ?? wholeRange(numEvents);
  const step = playStep(range, SECONDS, FRAMES_PER_SECOND);
  const last = clampedMoment(Math.ceil(range.high) - 1, numEvents);
  const ahead = Array.from({ length: playing ? STEPS_AHEAD : 0 }, (_, i) =>
    Math.min(moment + (i + 1) * step, last),
  );
  const wanted = [moment, ...ahead];
  const { error, newest, get, want } = useAnswers<SegmentsResponse>(
    asked,
    (event, signal) => client.get("segments", { ...asked, moment: event }, signal),
  );
  useEffect(() => want(wanted), [wanted.join()]);
  const shown = useRef<SegmentsResponse | null>(null);
  shown.current = get(moment) ?? newest ?? shown.current;
  const tick = useRef<(() => void) | null>(null);
  tick.current = () => {
    const [next = last] = ahead;
    if (moment >= last) setPlaying(false);
    else if (get(next) !== undefined) show(next);
  };
  useEffect(() => {
    if (!playing) return undefined;
    const timer = window.setInterval(() => tick.current?.(), 1000 / FRAMES_PER_SECOND);
    return () => window.clearInterval(timer);
  }, [playing]);
  return {
    state: shown.current,
    error,
    playing,
    stop: () => setPlaying(false),
    toggle: () => {
      // At its end playback restarts.
      if (!playing && moment >= last) {
        show(clampedMoment(Math.floor(range.low), numEvents));
      }
      setPlaying(!playing);
    },
  };
}

export function MomentBar(props: {
  readonly device: HistoryDevice;
  readonly moment: number;
  /** The newest known state, perhaps of an earlier moment. */
  readonly state: SegmentsResponse | null;
  readonly playing: boolean;
  readonly commands: readonly CommandRow[];
  readonly onMoment: (moment: number) => void;
  readonly hasOom: boolean;
  readonly hasMarks: boolean;
  readonly byteUnit: ByteUnit;
}) {
  const { device, moment, state, playing, byteUnit } = props;
  const run = (id: string): void => props.commands.find(([name]) => name === id)?.[2]();
  const button = (id: string, icon: IconName, label: string) => (
    <IconButton label={label} icon={icon} onClick={() => run(id)} />
  );
  return (
    <div class="segments-bar row small" role="toolbar" aria-label="Moment">
      <span class="nowrap">
        {button("earlier", "left", "One event back (left arrow; Shift: ten)")}
        {button(
          "play",
          playing ? "pause" : "play",
          playing ? "Pause (space)" : "Play (space)",
        )}
        {button("later", "right", "One event on (right arrow; Shift: ten)")}
      </span>
      <label class="nowrap">
        <span class="quiet">Event</span>{" "}
        <EventField
          label="Event number"
          shown={moment < 0 ? "start" : moment.toString()}
          onEvent={props.onMoment}
        />{" "}
        <span class="quiet">of {formatInteger(device.numEvents)}</span>
      </label>
      <span class="segments-what">
        {state?.moment.moment === moment ? (
          <Happened state={state} byteUnit={byteUnit} />
        ) : (
          <span class="quiet">{momentText(moment)}…</span>
        )}
      </span>
      <TextButton
        title="Go to the peak of reserved memory (P)"
        press={() => run("peak")}
      >
        Peak
      </TextButton>
      {props.hasOom && (
        <TextButton title="Go to the next out-of-memory error" press={() => run("oom")}>
          <span class="tone-bad">Out of memory</span>
        </TextButton>
      )}
      {props.hasMarks && (
        <span class="nowrap">
          {button("before", "left", "Previous mark ([)")}
          <span class="quiet">mark</span>
          {button("after", "right", "Next mark (])")}
        </span>
      )}
      <span class="nowrap">
        <ZoomButtons
          zoom={(sign) => run(sign < 0 ? "in" : "out")}
          fit={() => run("fit")}
        />
      </span>
    </div>
  );
}

/** `allocated: block of 24.0 MiB · step 3, backward`. */
function Happened({
  state: { action, actionBytes, moment },
  byteUnit,
}: {
  readonly state: SegmentsResponse;
  readonly byteUnit: ByteUnit;
}) {
  const actionText = action === null ? "before all events" : ACTION_WORDS[action];
  const relation = action === "oom" ? "requested" : "block of";
  const own = action?.startsWith("segment") === true ? "" : `${relation} `;
  const bytes = actionBytes ? `: ${own}${formatBytes(actionBytes, byteUnit)}` : "";
  const step = moment.step === null ? "" : `step ${formatInteger(moment.step)}`;
  const where = [step, moment.phase].filter((word) => word !== "").join(", ");
  return (
    <>
      <b class={action === "oom" ? "tone-bad" : ""}>
        {actionText}
        {bytes}
      </b>
      {where !== "" && <span class="quiet"> · {where}</span>}
    </>
  );
}
