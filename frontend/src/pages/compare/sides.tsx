import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { HistoriesResponse, HistoryDevice, RunSummary } from "../../api/types.gen";
import { HistoryChooser } from "../memory/history/chooser";
import { DeviceChoice } from "../memory/history/frame";
import { type FollowedHistory } from "../memory/history/use_history";
import { Choice, RowChoice } from "../shared/controls/choices";
import { EventField } from "../shared/controls/event_field";
import type { ViewProps } from "../shared/view_props";
import type { SideState } from "./params";
import { lastMoment } from "./defaults";

export function SideFrame(props: {
  readonly name: "A" | "B";
  readonly run: ComponentChildren;
  readonly children: ComponentChildren;
}) {
  const { name, run, children } = props;
  return (
    <div class="row compare-side" role="group" aria-label={`Side ${name}`}>
      <b class={`compare-letter ${name === "B" ? "tone-link" : ""}`}>{name}</b>
      {run}
      {children}
    </div>
  );
}

/** A longer list is not offered. */
const MAX_RANKS = 1_024;

/** null: all ranks. */
export function RankChoice(props: {
  readonly run: RunSummary;
  readonly rank: number | null;
  readonly onRank: (rank: number | null) => void;
}) {
  const { run, rank, onRank } = props;
  if (run.madeOf !== "recording") return null;
  const num = Math.min(run.numRanks, MAX_RANKS);
  return (
    <RowChoice
      label="Rank"
      names={Array.from({ length: num }, (_, index) => index.toString())}
      chosen={rank}
      onChoose={onRank}
    />
  );
}

export interface Side {
  readonly name: "A" | "B";
  readonly histories: HistoriesResponse | null;
  readonly history: string;
  readonly opened: FollowedHistory;
  readonly device: HistoryDevice | null;
  /** null: the peak. */
  readonly moment: number | null;
}

export function stateOf({ history, device, moment }: Side, of: SideState): SideState {
  return { ...of, history, device: device?.device ?? null, moment };
}

export function HistorySide(props: {
  readonly view: ViewProps;
  readonly side: Side;
  readonly set: (changes: Partial<SideState>, how?: "push") => void;
}) {
  const { view, side, set } = props;
  const { histories, device } = side;
  const facts = side.opened.answer?.facts ?? null;
  return (
    <>
      {histories !== null && histories.histories.length > 0 && (
        <HistoryChooser
          histories={histories}
          chosen={side.history}
          byteUnit={view.byteUnit}
          onChoose={(history) => set({ history, device: null, moment: null }, "push")}
        />
      )}
      {facts !== null && facts.devices.length > 1 && (
        <DeviceChoice
          facts={facts}
          chosen={device?.device ?? null}
          onChoose={(wanted) => set({ device: wanted, moment: null }, "push")}
        />
      )}
      {device !== null && (
        <MomentChoice
          name={side.name}
          device={device}
          moment={side.moment}
          onMoment={(moment) => set({ moment })}
        />
      )}
    </>
  );
}

const MAX_OOMS = 20;

/** Peak, end and every out-of-memory error, as words of the URL; "" is the peak. */
export function namedMoments(
  device: HistoryDevice,
): readonly (readonly [value: string, label: string])[] {
  const { kind, kinds, moment } = device.marks;
  const ooms = Array.from(moment).filter((_, i) => kinds[kind[i] ?? -1] === "oom");
  return [
    ["", "peak"],
    ...ooms
      .slice(0, MAX_OOMS)
      .map((event) => [event.toString(), `out of memory, event ${event}`] as const),
    [lastMoment(device).toString(), "end"],
  ];
}

const TYPED = "typed";

function MomentChoice(props: {
  readonly name: string;
  readonly device: HistoryDevice;
  readonly moment: number | null;
  readonly onMoment: (moment: number | null) => void;
}) {
  const { name, device, moment, onMoment } = props;
  const [typing, setTyping] = useState(false);
  const named = namedMoments(device);
  const value = moment?.toString() ?? "";
  const shown = typing || named.every(([option]) => option !== value) ? TYPED : value;
  return (
    <>
      <Choice
        label="Moment"
        value={shown}
        onChange={(next) => {
          setTyping(next === TYPED);
          if (next !== TYPED) onMoment(next === "" ? null : Number(next));
        }}
        of={[...named, [TYPED, "an event…"]]}
      />
      {shown === TYPED && (
        <EventField
          label={`Event of side ${name}, up to ${lastMoment(device)}`}
          placeholder="event"
          shown={value}
          onEvent={(typed) => {
            setTyping(false);
            onMoment(Math.min(Math.max(Math.round(typed), -1), lastMoment(device)));
          }}
        />
      )}
    </>
  );
}
