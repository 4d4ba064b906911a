/** Captured allocator histories: what there is, and how to get it out. */

import type { FunctionsResponse, HistoryReference } from "../../../api/types.gen";
import { formatBytesExact, formatInteger, type ByteUnit } from "../../../base/bytes";
import { formatInstant } from "../../../base/durations";
import { formatQuantity } from "../../../model/words/quantity";
import { CopyIcon } from "../../../widgets/icon/copy_icon";

/** What took the capture: a side of a call, or the user. */
export function captureWords(one: HistoryReference): string {
  if (one.function === "") return one.label === "" ? "by hand" : one.label;
  const phase = one.phase === "train" || one.phase === "" ? "" : ` (${one.phase})`;
  const side = one.context === "" ? "" : `, ${one.context}`;
  return `${one.function}${phase} iteration ${formatInteger(one.iteration)}${side}`;
}

/** Whether a capture is of the call shown. */
function isOfCall(one: HistoryReference, data: FunctionsResponse): boolean {
  return (
    one.function === data.function &&
    one.phase === data.phase &&
    one.iteration === data.iteration &&
    one.attempt === data.attempt
  );
}

/** Those of the call shown first; else in order of time. */
export function orderedHistories(data: FunctionsResponse): readonly HistoryReference[] {
  return [...data.histories].sort(
    (a, b) => Number(isOfCall(b, data)) - Number(isOfCall(a, data)),
  );
}

export function exportCommand(runName: string, rank: number): string {
  const run = /^[\w./-]+$/.test(runName)
    ? runName
    : `'${runName.replaceAll("'", "'\\''")}'`;
  return `memboard export LOGDIR --run ${run} --rank ${rank} --history`;
}

export function Histories({
  data,
  byteUnit,
}: {
  readonly data: FunctionsResponse;
  readonly byteUnit: ByteUnit;
}) {
  if (data.histories.length === 0) return null;
  const recorded = data.histories.some(({ path }) => path === "");
  return (
    <section aria-label="Allocator histories">
      <div class="panel-head">
        <h2 id="histories">Allocator histories</h2>
        <span class="quiet">
          {formatInteger(data.histories.length)} captured on rank {data.rank}
        </span>
      </div>
      <div class="table-scroll functions-histories">
        <table class="data-table">
          <thead>
            <tr>
              <th scope="col">Taken at</th>
              <th scope="col" class="num">
                Step
              </th>
              <th scope="col">When</th>
              <th scope="col" class="num">
                Size
              </th>
              <th scope="col">Where it is</th>
            </tr>
          </thead>
          <tbody>
            {orderedHistories(data).map((one) => (
              <tr key={one.id} aria-current={isOfCall(one, data) ? "true" : undefined}>
                <td>
                  {captureWords(one)}
                  {isOfCall(one, data) && <span class="quiet"> · this call</span>}
                </td>
                <td class="num">{one.step === null ? "–" : formatInteger(one.step)}</td>
                <td>{formatInstant(one.timeMs)}</td>
                <td class="num" title={formatBytesExact(one.numBytes)}>
                  {formatQuantity(one.numBytes, "bytes", byteUnit)}
                </td>
                <td>
                  {one.path === "" ? (
                    <span class="quiet">in the rank’s recording</span>
                  ) : (
                    <code>{one.path}</code>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {recorded && data.rank !== null && (
        <ExportHint text={exportCommand(data.run.name, data.rank)} />
      )}
    </section>
  );
}

function ExportHint({ text }: { readonly text: string }) {
  return (
    <p class="functions-export">
      <span class="quiet">
        As pickles that pytorch.org/memory_viz reads, LOGDIR being what TensorBoard was
        given:
      </span>{" "}
      <code>{text}</code> <CopyIcon label="Copy the command" text={text} />
    </p>
  );
}
