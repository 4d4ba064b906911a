import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { HistoriesResponse, HistoryDevice, RunSummary } from "../../api/types.gen";
import { useLive } from "../../api/live/use_live";
import { HistoryChooser } from "../memory/history/chooser";
import { DeviceChoice } from "../memory/history/frame";
import { SAME_RUN } from "../memory/history/moment";
import { type FollowedHistory } from "../memory/history/use_history";
import { Choice, RowChoice } from "../shared/controls/choices";
import { EventField } from "../shared/controls/event_field";
import { Nothing } from "../../widgets/state/state";
import type { ViewProps } from "../shared/view_props";
import type { PartProps, SideState } from "./params";
import { runBefore, lastMoment } from "./defaults";

const RUNS_POLL_MS = 10_000;
const NOTHING: SideState = { history: "", device: null, moment: null, source: null };

/** `note` is the reason where there is no run. */
interface OtherRun {
  readonly run: RunSummary | null;
  readonly choice: ComponentChildren;
  readonly note: ComponentChildren;
}

/** Without a run in the URL: a similar run, or B itself where it `hasOthers` inside. */
export function useOtherRun(
  { view: { client, run }, params, change }: PartProps,
  hasOthers: boolean,
): OtherRun {
  const runs = useLive(client, "runs", {}, RUNS_POLL_MS).data?.runs ?? null;
  const onlyName = <b>{run.name}</b>;
  if (runs === null) return { run: null, choice: onlyName, note: null };
  const word = params.aRun;
  const named = runs.find(
    (candidate) => candidate.id === word || candidate.name === word,
  );
  const others = runs.filter(
    (candidate) => candidate.id !== run.id && candidate.madeOf === run.madeOf,
  );
  const isOwn = hasOthers || word === SAME_RUN || others.length === 0;
  const chosen = named ?? (isOwn ? run : runBefore(others, run));
  if (runs.length < 2) return { run: chosen, choice: onlyName, note: null };
  const options = runs.map(({ id, name }) => [id, name] as const);
  return {
    run: chosen,
    choice: (
      <Choice
        label="Run"
        value={chosen?.id ?? ""}
        onChange={(id) => {
          const aRun = id === run.id ? SAME_RUN : id;
          change({ aRun, aRank: "", a: NOTHING }, "push");
        }}
        of={chosen === null ? [["", "choose…"], ...options] : options}
      />
    ),
    note: chosen === null && (
      <Nothing title={`No other run is like ${run.name}`}>
        <p>None has its name, its folder or its number of ranks. Choose a run for A.</p>
      </Nothing>
    ),
  };
}

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
