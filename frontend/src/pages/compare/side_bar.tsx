/** The choice of one side: run, history, device, moment. */

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
  readonly runs: readonly RunSummary[];
  readonly run: string;
  readonly onRun: (run: string) => void;
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

export function SideBar(props: SideBarProps) {
  const { name, runs, run, histories, facts, device } = props;
  return (
    <div class="history-bar compare-side" role="group" aria-label={`Side ${name}`}>
      <b class={`compare-letter is-${name}`}>{name}</b>
      {runs.length > 1 && (
        <Choice label="Run" value={run} onChange={props.onRun}>
          {runs.map((one) => (
            <option key={one.id} value={one.id}>
              {one.name}
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
      {histories?.histories.length === 0 && (
        <span class="quiet">This run has no allocator history.</span>
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
