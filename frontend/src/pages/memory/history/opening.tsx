import type {
  HistoriesResponse,
  HistoryChoice,
  HistoryResponse,
} from "../../../api/types.gen";
import { formatBytes, type ByteUnit } from "../../../base/bytes";
import { asSentence } from "../../../model/words/source_label";
import { Failure, Nothing } from "../../../widgets/state/state";
import { TextButton } from "../../shared/controls/choices";
import { historyTitle, rankWords } from "./words";
import { NotCollected } from "../../shared/panels/not_collected";

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
  const { answer, again, next = null, choose } = props;
  const { problem, reference } = answer;
  const path = problem?.path ?? reference.path;
  const where = problem?.where ?? "";
  const place = where.includes(path) ? [where] : [path, where];
  return (
    <Failure
      failure={{
        what: asSentence(problem?.what ?? "This history could not be opened."),
        where: place.filter((word) => word !== "").join(", "),
        remedy: problem?.remedy ?? "See TensorBoard’s output for the reason.",
      }}
      {...(problem !== null && problem.salvaged !== ""
        ? { note: `Recovered: ${problem.salvaged}` }
        : {})}
      action={
        <p class="row">
          <button type="button" class="button" onClick={again}>
            Try again
          </button>
          {next !== null && (
            <button
              type="button"
              class="button"
              onClick={() => choose?.(next.reference.id)}
            >
              Open {[rankWords(next), historyTitle(next)].filter(Boolean).join(", ")}{" "}
              instead
            </button>
          )}
        </p>
      }
    />
  );
}

const SNIPPET = `with collector.record(logdir, history=True) as rec:
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
          {ranks.length === 1
            ? `Rank ${ranks[0] ?? 0} has one.`
            : `${ranks.length} other ranks have some.`}{" "}
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
