/** The choice of one side: run, rank, history, device, moment. */

import { useState } from "preact/hooks";
import type {
  HistoriesResponse,
  HistoryDevice,
  HistoryFacts,
  RunSummary,
} from "../../api/types.gen";
import type { ByteUnit } from "../../base/bytes";
import { Choice } from "../shared/controls/choices";
import { HistoryChooser } from "../memory/history/chooser";
import { EventField } from "../shared/controls/event_field";
import { DeviceChoice } from "../memory/history/frame";
import { namedMoments } from "./sides";

export interface SideBarProps {
  readonly name: "A" | "B";
  /** Those to choose from; none where it is chosen elsewhere. */
  readonly runs: readonly RunSummary[];
  readonly run: RunSummary;
  readonly onRun: (run: string) => void;
  /** null: all. */
  readonly rank: number | null;
  readonly onRank: (rank: number | null) => void;
  readonly histories: HistoriesResponse | null;
  readonly history: string;
  readonly onHistory: (history: string) => void;
  readonly facts: HistoryFacts | null;
  readonly device: HistoryDevice | null;
  readonly onDevice: (device: number) => void;
  /** null: the peak. */
  readonly moment: number | null;
  readonly onMoment: (moment: number | null) => void;
  readonly byteUnit: ByteUnit;
}

const TYPED = "typed";
/** A longer list is no choice. */
const MAX_RANKS = 1_024;

/** The run of a side: a list, or its name where it is chosen elsewhere. */
export function RunChoice(props: {
  readonly runs: readonly RunSummary[];
  readonly run: RunSummary;
  readonly onRun: (run: string) => void;
}) {
  const { runs, run, onRun } = props;
  if (runs.length < 2) return <span class="compare-run">{run.name}</span>;
  return (
    <Choice label="Run" value={run.id} onChange={onRun}>
      {runs.map((one) => (
        <option key={one.id} value={one.id}>
          {one.name}
        </option>
      ))}
    </Choice>
  );
}

export function SideBar(props: SideBarProps) {
  const { name, runs, run, histories, facts, device } = props;
  return (
    <div class="history-bar compare-side" role="group" aria-label={`Side ${name}`}>
      <b class={`compare-letter is-${name}`}>{name}</b>
      <RunChoice runs={runs} run={run} onRun={props.onRun} />
      {run.numRanks > 1 && run.madeOf === "recording" && (
        <Choice
          label="Rank"
          value={props.rank?.toString() ?? ""}
          onChange={(value) => props.onRank(value === "" ? null : Number(value))}
        >
          <option value="">all</option>
          {Array.from({ length: Math.min(run.numRanks, MAX_RANKS) }, (_, rank) => (
            <option key={rank} value={rank}>
              {rank}
            </option>
          ))}
        </Choice>
      )}
      {histories !== null && histories.histories.length > 0 && (
        <HistoryChooser
          histories={histories}
          chosen={props.history}
          byteUnit={props.byteUnit}
          onChoose={props.onHistory}
        />
      )}
      {facts !== null && facts.devices.length > 1 && (
        <DeviceChoice
          facts={facts}
          chosen={device?.device ?? null}
          onChoose={props.onDevice}
        />
      )}
      {device !== null && <MomentChoice {...props} device={device} />}
    </div>
  );
}

function MomentChoice(props: SideBarProps & { readonly device: HistoryDevice }) {
  const { device, moment, onMoment, name } = props;
  const named = namedMoments(device);
  const value = moment === null ? "" : moment.toString();
  const [typing, setTyping] = useState(false);
  const isNamed = named.some((one) => one.value === value);
  const shown = typing || !isNamed ? TYPED : value;
  return (
    <>
      <Choice
        label="Moment"
        value={shown}
        onChange={(next) => {
          setTyping(next === TYPED);
          if (next !== TYPED) onMoment(next === "" ? null : Number(next));
        }}
      >
        {named.map((one) => (
          <option key={one.value} value={one.value}>
            {one.label}
          </option>
        ))}
        <option value={TYPED}>an event…</option>
      </Choice>
      {shown === TYPED && (
        <EventField
          class="compare-event"
          label={`Event of side ${name}, up to ${device.numEvents - 1}`}
          placeholder="event"
          shown={value}
          onEvent={(typed) => {
            setTyping(false);
            onMoment(Math.min(Math.max(Math.round(typed), -1), device.numEvents - 1));
          }}
        />
      )}
    </>
  );
}
