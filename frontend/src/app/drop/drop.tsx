/** Also by a button, for users without a mouse. */

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { DropResponse, RunSummary } from "../../api/types.gen";
import { sendDrop } from "../../api/live/sending";
import { counted } from "../../base/bytes";
import { listen } from "../../base/browser";
import { sendAll, type DropFault, type DroppedItem, type DropProgress } from "./queue";
import { Modal } from "../chrome/overlays";

interface DropTargetProps {
  /** RunsResponse.dropLimitBytes; 0: uploads are off; null: not known yet. */
  readonly limitBytes: number | null;
  readonly runs: readonly RunSummary[];
  /** Called once the run is known. */
  readonly show: (dropped: DropResponse) => void;
}

type Stage =
  | "idle"
  | "over"
  | { readonly progress: DropProgress | null }
  | { readonly faults: readonly DropFault[] };

export function DropTarget(props: DropTargetProps) {
  const { limitBytes, runs, show } = props;
  const [stage, setStage] = useState<Stage>("idle");
  const [arrived, setArrived] = useState<DropResponse | null>(null);
  const aborter = useRef<AbortController | null>(null);

  const take = (items: readonly DroppedItem[]): void => {
    if (items.length === 0 || aborter.current !== null) return;
    const abort = new AbortController();
    aborter.current = abort;
    setStage({ progress: null });
    void sendAll(
      items,
      limitBytes ?? 0,
      (file, onProgress) => sendDrop(file, onProgress, abort.signal),
      (progress) => setStage({ progress }),
    ).then(({ taken, faults }) => {
      aborter.current = null;
      setStage(faults.length > 0 ? { faults } : "idle");
      if (taken[0] !== undefined) setArrived(taken[0]);
    });
  };
  useDrag(setStage, take);
  useEffect(() => {
    // Shown once the list of runs has it; before, the page would report it missing.
    if (arrived !== null && runs.some((run) => run.id === arrived.run)) {
      setArrived(null);
      show(arrived);
    }
  }, [arrived, runs, show]);

  return (
    <>
      <input
        id="open-files"
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
      {stage === "over" && <Over isOff={limitBytes === 0} />}
      {typeof stage === "object" && "progress" in stage && (
        <Progress progress={stage.progress} cancel={() => aborter.current?.abort()} />
      )}
      {typeof stage === "object" && "faults" in stage && (
        <Faults faults={stage.faults} close={() => setStage("idle")} />
      )}
    </>
  );
}

/** Browsers expose the items only during the event. */
export function itemsOf(transfer: DataTransfer): readonly DroppedItem[] {
  return [...transfer.items].flatMap((item): DroppedItem[] => {
    const file = item.getAsFile();
    const entry = item.kind === "file" ? item.webkitGetAsEntry() : null;
    if (entry?.isDirectory === true) return [{ file: null, name: entry.name }];
    return file === null ? [] : [{ file, name: file.name }];
  });
}

/** All that is known before the drop. */
export function carriesFiles(transfer: DataTransfer | null): boolean {
  return transfer?.types.includes("Files") === true;
}

/** The whole window is the target; drags without files are left to the browser. */
function useDrag(
  setStage: (change: (stage: Stage) => Stage) => void,
  take: (items: readonly DroppedItem[]) => void,
): void {
  const taking = useRef(take);
  taking.current = take;
  useEffect(() => {
    const end = (): void => setStage((stage) => (stage === "over" ? "idle" : stage));
    const dragged = (event: DragEvent): void => {
      const { dataTransfer, type, relatedTarget } = event;
      if (type === "dragleave") {
        // Between two elements there is a next one; out of the window none.
        if (relatedTarget === null) end();
        return;
      }
      if (dataTransfer === null || !carriesFiles(dataTransfer)) return;
      event.preventDefault(); // otherwise the browser would open the file
      if (type === "drop") {
        end();
        taking.current(itemsOf(dataTransfer));
        return;
      }
      dataTransfer.dropEffect = "copy";
      setStage((stage) => (stage === "idle" ? "over" : stage));
    };
    return listen(window, ["dragenter", "dragover", "dragleave", "drop"], dragged);
  }, [setStage]);
}

function Sheet(props: {
  readonly title: string;
  readonly class: string;
  readonly children: ComponentChildren;
}) {
  return (
    <div class={props.class}>
      <div class="drop-box" role="status">
        <h2>{props.title}</h2>
        {props.children}
      </div>
    </div>
  );
}

function Over({ isOff }: { readonly isOff: boolean }) {
  const title = isOff
    ? "Dropping files is switched off"
    : "Drop memory snapshots or traces to open them";
  return (
    <Sheet title={title} class="drop over">
      {isOff ? (
        <p>
          TensorBoard runs with <code>--memboard_drop=false</code>. Open the file with{" "}
          <code>memboard open FILE</code>.
        </p>
      ) : (
        <p class="quiet">
          They stay on the machine TensorBoard runs on, until it ends.
        </p>
      )}
    </Sheet>
  );
}

function Progress(props: {
  readonly progress: DropProgress | null;
  readonly cancel: () => void;
}) {
  const { name = "", index = 1, count = 1, share } = props.progress ?? {};
  return (
    <Sheet
      title={count > 1 ? `Sending file ${index} of ${count}` : "Sending"}
      class="drop"
    >
      <p>{name}</p>
      <progress max={1} aria-label="Share that was sent" value={share} />
      <p class="quiet">
        {share === 1 ? "Reading it" : `${Math.floor(100 * (share ?? 0))} %`}
      </p>
      <button type="button" class="button" onClick={props.cancel}>
        Cancel
      </button>
    </Sheet>
  );
}

function Faults(props: {
  readonly faults: readonly DropFault[];
  readonly close: () => void;
}) {
  const { faults, close } = props;
  const title = `${counted(faults.length, "file")} not opened`;
  return (
    <Modal label={title} close={close}>
      <div class="drop-box">
        <h2>{title}</h2>
        <ul>
          {faults.map((fault, i) => (
            <li key={i}>
              <strong>{fault.name}</strong>
              <p>{fault.message}</p>
              <p class="quiet">{fault.remedy}</p>
            </li>
          ))}
        </ul>
        <button type="button" class="button" onClick={close}>
          Close
        </button>
      </div>
    </Modal>
  );
}
