/**
 * Frame of every page about one history: choice of history and device, and what
 * replaces the page while the history is opening, failed or absent.
 */

import { Fragment, type ComponentChildren } from "preact";
import type { Query } from "../../../api/client";
import type {
  HistoriesResponse,
  HistoryDevice,
  HistoryFacts,
  HistoryResponse,
} from "../../../api/types.gen";
import { Icon } from "../../../widgets/icon/icon";
import { ProblemList } from "../../../widgets/problem_list/problem_list";
import { Failure, Waiting } from "../../../widgets/state/state";
import { Choice } from "../../shared/controls/choices";
import "./history.css";
import { HistoryChooser } from "./chooser";
import { NoHistory, Opening, OpeningFailed } from "./opening";
import { deviceWords, historyWords, type MomentPlace } from "./moment";
import {
  chosenDevice,
  chosenHistory,
  nextHistory,
  useHistories,
  useHistory,
} from "./use_history";
import type { ViewProps } from "../../shared/view_props";

export interface OpenHistory {
  readonly answer: HistoryResponse;
  readonly facts: HistoryFacts;
  readonly device: HistoryDevice;
  readonly at: MomentPlace;
  /** run, history and device. */
  readonly place: Query;
}

interface HistoryFrameProps {
  readonly view: ViewProps;
  /** As in the URL; "": the server chooses. */
  readonly history: string;
  readonly device: number | null;
  /** Beside the choice of history and device; null while none is open. */
  readonly tools: (open: OpenHistory | null) => ComponentChildren;
  readonly children: (open: OpenHistory) => ComponentChildren;
}

export function HistoryFrame(props: HistoryFrameProps) {
  const { view } = props;
  const { client, run, ranks } = view;
  const query = { run: run.id, rank: ranks.rank };
  const { data, error } = useHistories(client, query, props.history, view.pollMs);
  return (
    <div class="history">
      <Waiting error={error} hasContent={data !== null} blocksPx={[32, 520]} />
      {data !== null && data.histories.length === 0 && (
        <NoHistory
          histories={data}
          rank={ranks.rank}
          showAllRanks={() => view.chooseRank(null)}
        />
      )}
      {data !== null && data.histories.length > 0 && (
        <Chosen {...props} histories={data} />
      )}
      {data !== null && data.problems.length > 0 && (
        <ProblemList problems={data.problems} />
      )}
    </div>
  );
}

function Chosen(props: HistoryFrameProps & { readonly histories: HistoriesResponse }) {
  const { view, histories, children } = props;
  const { byteUnit, setParams } = view;
  const id = chosenHistory(histories, props.history);
  const { answer, error, again } = useHistory(view.client, view.run.id, id);
  const facts = answer?.facts ?? null;
  const device = chosenDevice(facts, props.device);
  const choose = (wanted: string): void => setParams(historyWords(wanted), "push");
  const open =
    answer === null || facts === null || device === null
      ? null
      : {
          ...{ answer, facts, device, at: { history: id, device } },
          place: { run: view.run.id, history: id, device: device.device },
        };
  return (
    <>
      <div class="row">
        <HistoryChooser
          histories={histories}
          chosen={id}
          byteUnit={byteUnit}
          onChoose={choose}
        />
        {facts !== null && facts.devices.length > 1 && (
          <DeviceChoice
            facts={facts}
            chosen={device?.device ?? null}
            onChoose={(wanted) => setParams(deviceWords(wanted), "push")}
          />
        )}
        {props.tools(open)}
      </div>
      <Waiting error={error} hasContent={answer !== null} blocksPx={[520]} />
      {answer?.state === "failed" && (
        <OpeningFailed
          {...{ answer, again, choose }}
          next={nextHistory(histories, id)}
        />
      )}
      {(answer?.state === "opening" || answer?.state === "closed") && (
        <Opening answer={answer} byteUnit={byteUnit} />
      )}
      {open !== null && (
        <>
          <HistoryNotes device={open.device} warns />
          <Fragment key={`${id} ${open.device.device}`}>{children(open)}</Fragment>
        </>
      )}
      {facts !== null && device === null && (
        <Failure
          failure={{
            what: "This history contains no device.",
            where: answer?.reference.path ?? "",
            remedy:
              "It has no events and no segments: nothing was allocated, or recording was off.",
          }}
        />
      )}
    </>
  );
}

export function DeviceChoice(props: {
  readonly facts: HistoryFacts;
  readonly chosen: number | null;
  readonly onChoose: (device: number) => void;
}) {
  return (
    <Choice
      label="Device"
      value={props.chosen?.toString() ?? ""}
      onChange={(value) => props.onChoose(Number(value))}
    >
      {props.facts.devices.map((one) => (
        <option key={one.device} value={one.device}>
          {one.device}
          {one.numEvents === 0 && " (no events)"}
        </option>
      ))}
    </Choice>
  );
}

export function HistoryNotes(props: {
  readonly device: HistoryDevice;
  /** true: only problems; false: only what is missing. */
  readonly warns: boolean;
}) {
  const { device, warns } = props;
  const notes = device.notes.filter((one) => one.warns === warns);
  if (notes.length === 0) return null;
  return (
    <ul class="small">
      {notes.map(({ text }) => (
        <li key={text} class={warns ? "" : "quiet"}>
          <span class={warns ? "tone-warn" : ""}>
            <Icon name={warns ? "warning" : "info"} sizePx={14} />
          </span>{" "}
          {text}
        </li>
      ))}
    </ul>
  );
}
