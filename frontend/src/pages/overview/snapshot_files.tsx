/** Imported snapshots: a row for each file says what it holds at its peak. */

import type { FilePeak } from "../../api/types.gen";
import { useLive } from "../../api/use_live";
import { formatBytes, formatBytesExact, formatInteger } from "../../base/bytes";
import { categoryColour, groupNamed } from "../../model/category";
import { openPlace } from "../../widgets/finding/place";
import { Failure, Skeleton } from "../../widgets/state/state";
import { Status } from "../../widgets/status/status";
import type { ViewProps } from "../shared/view_props";

const READING_POLL_MS = 1_000;

export function SnapshotFiles(props: {
  readonly view: ViewProps;
  /** Lines that findings blame. */
  readonly blamed: readonly string[];
}) {
  const { view, blamed } = props;
  const query = { run: view.run.id, rank: view.ranks.rank };
  const { data, error } = useLive(
    view.client,
    "snapshot_files",
    query,
    Math.min(view.pollMs, READING_POLL_MS),
  );
  if (data === null) {
    return error === null ? <Skeleton heightPx={120} /> : <Failure failure={error} />;
  }
  if (data.files.length === 0) return null;
  const scale = Math.max(...data.files.map((one) => one.reservedBytes ?? 0), 1);
  const rest = data.numFiles - data.files.length;
  return (
    <section class="table-scroll" aria-label="Snapshots" aria-busy={data.stillReading}>
      <table class="data-table snapshot-files">
        <thead>
          <tr>
            <th scope="col">Snapshot</th>
            <th scope="col" class="num">
              Peak
            </th>
            <th scope="col" class="num">
              Reserved
            </th>
            <th scope="col">At the peak, of the most reserved</th>
            <th scope="col">Largest holder</th>
            <th scope="col">Ended</th>
          </tr>
        </thead>
        <tbody>
          {data.files.map((one) => (
            <Row
              key={one.reference.id}
              one={one}
              isBlamed={blamed.includes(one.largest?.label ?? "")}
              scale={scale}
              view={view}
            />
          ))}
        </tbody>
      </table>
      {rest > 0 && <p class="quiet">And {formatInteger(rest)} older files.</p>}
    </section>
  );
}

function Row(props: {
  readonly one: FilePeak;
  /** The line that holds most. */
  readonly isBlamed: boolean;
  /** Bytes that fill the bar. */
  readonly scale: number;
  readonly view: ViewProps;
}) {
  const { one, scale, view } = props;
  const { reference, largest } = one;
  const name = reference.path === "" ? reference.label : reference.path;
  const open = (): void =>
    openPlace(
      {
        ...{ page: "blocks", label: "", step: null, source: null },
        ...{ rank: view.ranks.rank, history: reference.id },
        ...{ device: one.device, moment: one.moment },
      },
      view,
    );
  const size = (bytes: number | null) => (
    <td class="num" title={bytes === null ? undefined : formatBytesExact(bytes)}>
      {bytes === null ? "–" : formatBytes(bytes, view.byteUnit)}
    </td>
  );
  return (
    <tr>
      <th scope="row">
        <button
          type="button"
          class="text-button"
          title={`${name}: open its blocks at the peak`}
          onClick={open}
        >
          {name.split("/").at(-1)}
        </button>
      </th>
      {size(one.peakBytes)}
      {size(one.reservedBytes)}
      <td>
        <span class="snapshot-bar">
          {one.categories.map(({ category, bytes }) => (
            <span
              key={category}
              title={`${category}: ${formatBytes(bytes, view.byteUnit)}`}
              style={{
                width: `${((100 * bytes) / scale).toFixed(2)}%`,
                background: categoryColour(view.theme, groupNamed(category)),
              }}
            />
          ))}
        </span>
      </td>
      <td>
        {largest === null ? (
          "–"
        ) : (
          <>
            <span class={props.isBlamed ? "mono culprit" : "mono"}>
              {largest.label}
            </span>{" "}
            {formatBytes(largest.bytes, view.byteUnit)}
          </>
        )}
      </td>
      <td class="nowrap">{ended(one)}</td>
    </tr>
  );
}

function ended({ state, problem, outOfMemory }: FilePeak) {
  if (state === "failed") return <span title={problem}>could not be read</span>;
  if (state === "opening") return <span class="quiet">reading</span>;
  if (state === "closed") return <span class="quiet">large: open it to read it</span>;
  return outOfMemory === true ? (
    <Status look={{ word: "out of memory", icon: "cross", tone: "bad" }} />
  ) : (
    <Status look={{ word: "no error", icon: "check", tone: "ok" }} />
  );
}
