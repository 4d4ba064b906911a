/**
 * Memory snapshots and traces dropped onto the page, anywhere: sent to TensorBoard one after
 * another, then shown. The same by a button, for who has no mouse.
 */

import { useEffect, useRef, useState } from "preact/hooks";
import type { DropResponse, RunSummary } from "../../api/types.gen";
import type { DropFault, DropProgress } from "./queue";
import { carriesFiles, type DroppedItem, itemsOf } from "./dropped";
import { Modal } from "../chrome/overlays";
import "./drop.css";

export interface DropTargetProps {
  /** RunsResponse.dropLimitBytes; 0: nothing is taken. null: not known yet. */
  readonly limitBytes: number | null;
  readonly runs: readonly RunSummary[];
  /** Opens what was dropped; asked once the run is known. */
  readonly show: (dropped: DropResponse) => void;
  /** Raised by one each time the button is pressed that chooses files. */
  readonly asked: number;
}

type Stage =
  | { readonly kind: "idle" }
  | { readonly kind: "over" }
  | { readonly kind: "sending"; readonly progress: DropProgress | null }
  | { readonly kind: "faults"; readonly faults: readonly DropFault[] };

const IDLE: Stage = { kind: "idle" };

export function DropTarget(props: DropTargetProps) {
  const { limitBytes, runs, show } = props;
  const [stage, setStage] = useState<Stage>(IDLE);
  const [arrived, setArrived] = useState<DropResponse | null>(null);
  const aborter = useRef<AbortController | null>(null);
  const input = useRef<HTMLInputElement>(null);

  const take = (items: readonly DroppedItem[]): void => {
    if (items.length === 0 || aborter.current !== null) return;
    const abort = new AbortController();
    aborter.current = abort;
    setStage({ kind: "sending", progress: null });
    void send(items, limitBytes ?? 0, abort.signal, (progress) =>
      setStage({ kind: "sending", progress }),
    ).then(({ taken, faults }) => {
      aborter.current = null;
      setStage(faults.length > 0 ? { kind: "faults", faults } : IDLE);
      if (taken[0] !== undefined) setArrived(taken[0]);
    });
  };
  useDrag(setStage, take);
  useEffect(() => {
    if (props.asked > 0) input.current?.click();
  }, [props.asked]);
  useEffect(() => {
    // Shown only when the list of runs has it: until then the page would say it is gone.
    if (arrived !== null && runs.some((run) => run.id === arrived.run)) {
      setArrived(null);
      show(arrived);
    }
  }, [arrived, runs, show]);

  return (
    <>
      <input
        ref={input}
        type="file"
        multiple
        hidden
        aria-label="Memory snapshots and traces to open"
        onChange={(event) => {
          const files = [...(event.currentTarget.files ?? [])];
          event.currentTarget.value = ""; // so that the same file can be chosen again
          take(files.map((file) => ({ file, name: file.name })));
        }}
      />
      {stage.kind === "over" && <Over isOff={limitBytes === 0} />}
      {stage.kind === "sending" && (
        <Progress progress={stage.progress} cancel={() => aborter.current?.abort()} />
      )}
      {stage.kind === "faults" && (
        <Faults faults={stage.faults} close={() => setStage(IDLE)} />
      )}
    </>
  );
}

/** What sends them is loaded when something is dropped. */
async function send(
  items: readonly DroppedItem[],
  limitBytes: number,
  signal: AbortSignal,
  onProgress: (progress: DropProgress) => void,
) {
  const [{ sendAll }, { sendDrop }] = await Promise.all([
    import("./queue"),
    import("../../api/sending"),
  ]);
  return sendAll(
    items,
    limitBytes,
    (file, onShare) => sendDrop(file, { onProgress: onShare, signal }),
    onProgress,
  );
}

/** The whole window is the target; what is not files is left to the browser. */
function useDrag(
  setStage: (change: (stage: Stage) => Stage) => void,
  take: (items: readonly DroppedItem[]) => void,
): void {
  const taking = useRef(take);
  taking.current = take;
  useEffect(() => {
    const hover = (event: DragEvent): void => {
      if (!carriesFiles(event.dataTransfer)) return;
      event.preventDefault(); // else the browser would leave the page for the file
      if (event.dataTransfer !== null) event.dataTransfer.dropEffect = "copy";
      setStage((stage) => (stage.kind === "idle" ? { kind: "over" } : stage));
    };
    const leave = (event: DragEvent): void => {
      // Between two elements of the page there is a next one; out of the window none.
      if (event.relatedTarget === null) setStage(ended);
    };
    const drop = (event: DragEvent): void => {
      if (!carriesFiles(event.dataTransfer) || event.dataTransfer === null) return;
      event.preventDefault();
      setStage(ended);
      taking.current(itemsOf(event.dataTransfer));
    };
    window.addEventListener("dragenter", hover);
    window.addEventListener("dragover", hover);
    window.addEventListener("dragleave", leave);
    window.addEventListener("drop", drop);
    return () => {
      window.removeEventListener("dragenter", hover);
      window.removeEventListener("dragover", hover);
      window.removeEventListener("dragleave", leave);
      window.removeEventListener("drop", drop);
    };
  }, [setStage]);
}

function ended(stage: Stage): Stage {
  return stage.kind === "over" ? IDLE : stage;
}

function Over({ isOff }: { readonly isOff: boolean }) {
  return (
    <div class="drop over">
      <div class="drop-box">
        {isOff ? (
          <>
            <h2>Dropping files is switched off</h2>
            <p>
              TensorBoard runs with <code>--memboard_drop=false</code>. Open the file
              with <code>memboard open FILE</code>.
            </p>
          </>
        ) : (
          <>
            <h2>Drop memory snapshots or traces to open them</h2>
            <p class="quiet">
              They stay on the machine TensorBoard runs on, until it ends.
            </p>
          </>
        )}
      </div>
    </div>
  );
}

function Progress(props: {
  readonly progress: DropProgress | null;
  readonly cancel: () => void;
}) {
  const { progress } = props;
  return (
    <div class="drop">
      <div class="drop-box" role="status">
        <h2>
          {progress !== null && progress.count > 1
            ? `Sending file ${progress.index} of ${progress.count}`
            : "Sending"}
        </h2>
        <p>{progress?.name ?? ""}</p>
        <progress
          max={1}
          aria-label="Share that was sent"
          {...(progress === null ? {} : { value: progress.share })}
        />
        <p class="quiet">
          {progress?.share === 1
            ? "Looking into it"
            : `${Math.floor(100 * (progress?.share ?? 0))} %`}
        </p>
        <button type="button" class="button" onClick={props.cancel}>
          Cancel
        </button>
      </div>
    </div>
  );
}

function Faults(props: {
  readonly faults: readonly DropFault[];
  readonly close: () => void;
}) {
  const title =
    props.faults.length === 1
      ? "A file was not opened"
      : `${props.faults.length} files were not opened`;
  return (
    <Modal label={title} close={props.close} class="drop-faults">
      <h2>{title}</h2>
      <ul>
        {props.faults.map((fault, i) => (
          <li key={i}>
            <strong>{fault.name}</strong>
            <p>{fault.what}</p>
            <p class="quiet">{fault.remedy}</p>
          </li>
        ))}
      </ul>
      <button type="button" class="button" onClick={props.close}>
        Close
      </button>
    </Modal>
  );
}
