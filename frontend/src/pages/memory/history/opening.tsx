/** While a history is being opened, where it cannot be, and where there is none. */

import type {
  HistoriesResponse,
  HistoryChoice,
  HistoryResponse,
} from "../../../api/types.gen";
import { formatBytes, type ByteUnit } from "../../../base/bytes";
import { asSentence } from "../../../model/words/source_label";
import { Failure, Nothing } from "../../../widgets/state/state";
import { historyTitle, rankWords } from "./words";
import { NotCollected } from "../../shared/panels/not_collected";

export function Opening({
  answer,
  byteUnit,
}: {
  readonly answer: HistoryResponse;
  readonly byteUnit: ByteUnit;
}) {
  const { progress, doing, reference } = answer;
  const percent = Math.round(Math.min(Math.max(progress, 0), 1) * 100);
  const size = formatBytes(reference.numBytes, byteUnit);
  return (
    <div class="history-opening" role="status">
      <p>
        <strong>Opening the history</strong>{" "}
        <span class="quiet">
          {size}
          {reference.path !== "" && (
            <>
              {" "}
              · <code>{reference.path}</code>
            </>
          )}
        </span>
      </p>
      <progress aria-label="Opening the history" max={100} value={percent} />
      <p class="quiet">
        {doing === "" ? "Reading" : doing} · {percent} %
      </p>
    </div>
  );
}

/** Why a history cannot be opened: the file, what is wrong, what to do. */
export function OpeningFailed({
  answer,
  again,
  other = null,
}: {
  readonly answer: HistoryResponse;
  readonly again: () => void;
  /** Another one to go on with. */
  readonly other?: {
    readonly history: HistoryChoice;
    readonly open: () => void;
  } | null;
}) {
  const { problem, reference } = answer;
  const path = problem?.path ?? reference.path;
  const where = problem?.where ?? "";
  const place = where.includes(path) ? [where] : [path, where];
  return (
    <Failure
      failure={{
        what: asSentence(problem?.what ?? "This history could not be opened."),
        where: place.filter((word) => word !== "").join(", "),
        remedy: problem?.remedy ?? "Look at TensorBoard’s own output for the reason.",
      }}
      {...(problem !== null && problem.salvaged !== ""
        ? { note: `What was read in spite of it: ${problem.salvaged}` }
        : {})}
      action={
        <p class="row">
          <button type="button" class="button" onClick={again}>
            Try again
          </button>
          {other !== null && (
            <button type="button" class="button" onClick={other.open}>
              Open {nameOf(other.history)} instead
            </button>
          )}
        </p>
      }
    />
  );
}

function nameOf(history: HistoryChoice): string {
  const words = [rankWords(history), historyTitle(history)];
  return words.filter((word) => word !== "").join(", ");
}

const SNIPPET = `with collector.record(logdir, history=True) as rec:
    ...
    rec.snapshot("before the optimizer")`;

export function NoHistory({
  histories,
  rank,
  showAllRanks,
}: {
  readonly histories: HistoriesResponse;
  readonly rank: number | null;
  readonly showAllRanks: () => void;
}) {
  if (histories.stillReading) {
    return (
      <Nothing title="Looking for allocator histories">
        <p>The recording is still being read. This page updates automatically.</p>
      </Nothing>
    );
  }
  if (rank !== null && histories.ranks.length > 0) {
    return (
      <Nothing title={`Rank ${rank} has no allocator history`}>
        <p>
          {histories.ranks.length === 1
            ? `Rank ${histories.ranks[0] ?? 0} has one.`
            : `${histories.ranks.length} other ranks have some.`}
        </p>
        <p>
          <button type="button" class="button" onClick={showAllRanks}>
            Show all ranks
          </button>
        </p>
      </Nothing>
    );
  }
  return (
    <NotCollected
      title="No allocator history in this run"
      absent={histories.absent}
      snippet={SNIPPET}
      note="Pickles of torch.cuda.memory._dump_snapshot in the logdir appear automatically, and open here when they are dropped onto this page. An out-of-memory error is captured automatically."
    />
  );
}
