/**
 * Frame of every page about one history: choice of history and device, and what
 * replaces the page while the history is opening, failed or absent.
 */

import { Fragment, type ComponentChildren } from "preact";
import type {
  HistoriesResponse,
  HistoryDevice,
  HistoryFacts,
  HistoryResponse,
  HistoryChoice,
} from "../../../api/types.gen";
import { counted, formatBytes, type ByteUnit } from "../../../base/bytes";
import { Icon } from "../../../widgets/icon/icon";
import { ProblemList } from "../../../widgets/problem_list/problem_list";
import { Failure, Waiting, Nothing } from "../../../widgets/state/state";
import { Choice, TextButton } from "../../shared/controls/choices";
import { NotCollected } from "../../shared/panels/not_collected";
import type { ViewProps } from "../../shared/view_props";
import { HistoryChooser } from "./chooser";
import { deviceWords, historyWords } from "./moment";
import {
  chosenDevice,
  chosenHistory,
  nextHistory,
  useHistories,
  useHistory,
  type OpenHistory,
} from "./use_history";
import { rankWords } from "./text";
import "./history.css";

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
    <div class="column">
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
          answer,
          facts,
          device,
          momentPlace: { history: id, device },
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
          answer={answer}
          again={again}
          choose={choose}
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
            message: "This history contains no device.",
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
      of={props.facts.devices.map(({ device, title, numEvents }) => {
        const name = device < 0 ? title : device.toString();
        return [device, numEvents === 0 ? `${name} (no events)` : name];
      })}
    />
  );
}

export function HistoryNotes(props: {
  readonly device: HistoryDevice;
  /** true: only problems; false: only what is missing. */
  readonly warns: boolean;
}) {
  const { device, warns } = props;
  const notes = device.notes.filter((note) => note.warns === warns);
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

interface AnswerProps {
  readonly answer: HistoryResponse;
}

export function Opening(props: AnswerProps & { readonly byteUnit: ByteUnit }) {
  const { answer, byteUnit } = props;
  const { progress, doing, reference } = answer;
  const percent = Math.round(Math.min(Math.max(progress, 0), 1) * 100);
  const size = formatBytes(reference.numBytes, byteUnit);
  return (
    <div class="history-opening" role="status">
      <p>
        <strong>Opening the history</strong>{" "}
        <span class="quiet">
          {size} <code>{reference.path}</code>
        </span>
      </p>
      <progress aria-label="Opening the history" max={100} value={percent} />
      <p class="quiet">
        {doing === "" ? "Reading" : doing} · {percent} %
      </p>
    </div>
  );
}

export function OpeningFailed(
  props: AnswerProps & {
    readonly again: () => void;
    /** Another history to offer. */
    readonly next?: HistoryChoice | null;
    readonly choose?: (id: string) => void;
  },
) {
  const { again, next = null, choose } = props;
  const { problem } = props.answer;
  const other = next?.reference;
  return (
    <div role="alert">
      {problem !== null && <ProblemList problems={[problem]} />}
      <p class="row">
        <button type="button" class="button" onClick={again}>
          Try again
        </button>
        {other !== undefined && (
          <button type="button" class="button" onClick={() => choose?.(other.id)}>
            Open {[rankWords(other), other.title].filter(Boolean).join(", ")} instead
          </button>
        )}
      </p>
    </div>
  );
}

const SNIPPET = `with mb.record(logdir, history=True) as rec:
    ...
    rec.snapshot("before the optimizer")`;

export function NoHistory(props: {
  readonly histories: HistoriesResponse;
  readonly rank: number | null;
  readonly showAllRanks: () => void;
}) {
  const { rank, showAllRanks } = props;
  const { ranks, stillReading, absent } = props.histories;
  if (stillReading) {
    return (
      <Nothing title="Looking for allocator histories">
        <p>The recording is still being read. This page updates automatically.</p>
      </Nothing>
    );
  }
  if (rank !== null && ranks.length > 0) {
    return (
      <Nothing title={`Rank ${rank} has no allocator history`}>
        <p>
          {`Recorded on ${counted(ranks.length, "other rank")}.`}{" "}
          <TextButton press={showAllRanks}>Show all ranks</TextButton>
        </p>
      </Nothing>
    );
  }
  return (
    <NotCollected
      title="No allocator history in this run"
      absent={absent}
      snippet={SNIPPET}
      note="Pickles of torch.cuda.memory._dump_snapshot in the logdir appear automatically, and open here when they are dropped onto this page. An out-of-memory error is captured automatically."
    />
  );
}
