import type { FilePeak } from "../../api/types.gen";
import { useLive } from "../../api/use_live";
import { counted, formatBytes, formatBytesExact } from "../../base/bytes";
import { categoryColour, groupNamed } from "../../model/category";
import { openPlace } from "../../widgets/finding/place";
import { PlainTable, type PlainColumn } from "../../widgets/row_table/plain_table";
import { Waiting } from "../../widgets/state/state";
import { Status } from "../../widgets/icon/icon";
import { TextButton } from "../shared/controls/choices";
import type { ViewProps } from "../shared/view_props";

export function SnapshotFiles(props: {
  readonly view: ViewProps;
  readonly blamed: readonly string[];
}) {
  const { view, blamed } = props;
  const query = { run: view.run.id, rank: view.ranks.rank };
  const { data, error } = useLive(view.client, "snapshot_files", query, view.pollMs);
  if (data === null) {
    return <Waiting error={error} hasContent={false} blocksPx={[120]} />;
  }
  if (data.files.length === 0) return null;
  const scale = Math.max(...data.files.map((file) => file.reservedBytes ?? 0), 1);
  const rest = data.numFiles - data.files.length;
  return (
    <section
      class="snapshot-files"
      aria-label="Snapshots"
      aria-busy={data.stillReading}
    >
      <PlainTable
        label="Snapshots"
        columns={fileColumns(view, scale, blamed)}
        rows={data.files}
      />
      {rest > 0 && <p class="quiet">And {counted(rest, "older file")}.</p>}
    </section>
  );
}

function fileColumns(
  view: ViewProps,
  scale: number,
  blamed: readonly string[],
): readonly PlainColumn<FilePeak>[] {
  const { byteUnit, theme } = view;
  const size = (bytes: number | null) => (
    <span title={formatBytesExact(bytes)}>{formatBytes(bytes, byteUnit)}</span>
  );
  return [
    {
      title: "Snapshot",
      cell: (file) => {
        const { path, label } = file.reference;
        const name = path === "" ? label : path;
        return (
          <TextButton
            title={`${name}: open its blocks at the peak`}
            press={() => openAtPeak(view, file)}
          >
            {name.split("/").at(-1)}
          </TextButton>
        );
      },
    },
    { title: "Peak", look: "num", cell: ({ peakBytes }) => size(peakBytes) },
    {
      title: "Reserved",
      look: "num",
      cell: ({ reservedBytes }) => size(reservedBytes),
    },
    {
      title: "Categories at the peak",
      cell: ({ categories }) => (
        <span class="snapshot-bar">
          {categories.map(({ category, bytes }) => (
            <span
              key={category}
              title={`${category}: ${formatBytes(bytes, byteUnit)}`}
              style={{
                width: `${((100 * bytes) / scale).toFixed(2)}%`,
                background: categoryColour(theme, groupNamed(category)),
              }}
            />
          ))}
        </span>
      ),
    },
    {
      title: "Largest holder",
      cell: ({ largest }) =>
        largest === null ? (
          "–"
        ) : (
          <>
            <code class={blamed.includes(largest.label) ? "culprit" : ""}>
              {largest.label}
            </code>{" "}
            {formatBytes(largest.bytes, byteUnit)}
          </>
        ),
    },
    { title: "Ended", look: "nowrap", cell: ended },
  ];
}

function openAtPeak(view: ViewProps, { reference, device, moment }: FilePeak): void {
  const place = { page: "blocks", label: "", step: null, source: null } as const;
  const { rank } = view.ranks;
  openPlace({ ...place, rank, history: reference.id, device, moment }, view);
}

function ended({ state, problem, outOfMemory }: FilePeak) {
  if (state === "failed") return <span title={problem}>could not be read</span>;
  if (state === "opening") return <span class="quiet">reading</span>;
  if (state === "closed") return <span class="quiet">large: open it to read it</span>;
  if (outOfMemory === null) return <span title="It holds no history">–</span>;
  return outOfMemory ? (
    <Status look={{ word: "out of memory", icon: "cross", tone: "bad" }} />
  ) : (
    <Status look={{ word: "no error", icon: "check", tone: "ok" }} />
  );
}
