/** Plays and steps through events, and jumps to what matters. */

import type { HistoryDevice, SegmentsResponse } from "../../../api/types.gen";
import { formatBytes, formatInteger, type ByteUnit } from "../../../base/bytes";
import { momentText } from "../../../widgets/block_stack/axis";
import { ChartButton } from "../../../widgets/line_chart/chart_button";
import { ZoomButtons } from "../../../widgets/line_chart/zoom_buttons";
import { EventField } from "../../shared/controls/event_field";
import { actionWords } from "./words";

export interface TransportActions {
  readonly step: (by: number) => void;
  readonly toPeak: () => void;
  readonly toOom: () => void;
  readonly toMark: (side: -1 | 1) => void;
  readonly goTo: (moment: number) => void;
  readonly zoom: (sign: number) => void;
  readonly fit: () => void;
}

export function Transport(props: {
  readonly device: HistoryDevice;
  readonly moment: number;
  /** What is known of it, maybe not yet of this very moment. */
  readonly state: SegmentsResponse | null;
  readonly playing: boolean;
  readonly onPlay: () => void;
  readonly actions: TransportActions;
  readonly hasOom: boolean;
  readonly hasMarks: boolean;
  readonly byteUnit: ByteUnit;
}) {
  const { device, moment, state, playing, actions, byteUnit } = props;
  const { step } = actions;
  return (
    <div class="segments-transport" role="toolbar" aria-label="Moment">
      <span class="segments-buttons">
        <ChartButton
          label="One event back (left arrow; Shift: ten)"
          icon="left"
          onClick={() => step(-1)}
        />
        <ChartButton
          label={playing ? "Pause (space)" : "Play (space)"}
          icon={playing ? "pause" : "play"}
          pressed={playing}
          onClick={props.onPlay}
        />
        <ChartButton
          label="One event on (right arrow; Shift: ten)"
          icon="right"
          onClick={() => step(1)}
        />
      </span>
      <label class="segments-event">
        <span class="quiet">Event</span>{" "}
        <EventField
          label="Event number"
          shown={moment < 0 ? "start" : moment.toString()}
          onEvent={actions.goTo}
        />{" "}
        <span class="quiet">of {formatInteger(device.numEvents)}</span>
      </label>
      <span class="segments-what">
        {state !== null && state.moment.moment === moment ? (
          <What state={state} byteUnit={byteUnit} />
        ) : (
          <span class="quiet">{momentText(moment)}…</span>
        )}
      </span>
      <span class="segments-jumps">
        <button
          type="button"
          class="text-button"
          title="Go to the peak of reserved memory (P)"
          onClick={actions.toPeak}
        >
          Peak
        </button>
        {props.hasOom && (
          <button
            type="button"
            class="text-button is-bad"
            title="Go to the next out-of-memory error"
            onClick={actions.toOom}
          >
            Out of memory
          </button>
        )}
        {props.hasMarks && (
          <span class="segments-buttons">
            <ChartButton
              label="Previous mark ([)"
              icon="left"
              onClick={() => actions.toMark(-1)}
            />
            <span class="quiet">mark</span>
            <ChartButton
              label="Next mark (])"
              icon="right"
              onClick={() => actions.toMark(1)}
            />
          </span>
        )}
      </span>
      <span class="segments-buttons">
        <ZoomButtons zoom={actions.zoom} fit={actions.fit} />
      </span>
    </div>
  );
}

/** `allocated 24.0 MiB · step 3, backward`. */
function What(props: {
  readonly state: SegmentsResponse;
  readonly byteUnit: ByteUnit;
}) {
  const { action, actionBytes, moment } = props.state;
  const words = action === null ? "before all events" : actionWords(action);
  const bytes =
    actionBytes === null || !(actionBytes > 0)
      ? ""
      : formatBytes(actionBytes, props.byteUnit);
  const step = moment.step === null ? "" : `step ${formatInteger(moment.step)}`;
  const where = [step, moment.phase].filter((word) => word !== "").join(", ");
  return (
    <>
      <b class={action === "oom" ? "is-bad" : ""}>
        {words}
        {action === "oom" ? ", asked for" : ""} {bytes}
      </b>
      {where !== "" && <span class="quiet"> · {where}</span>}
    </>
  );
}
