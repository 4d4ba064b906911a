import { useMemo } from "preact/hooks";
import type { FilePeak } from "../../api/types.gen";
import { useLive } from "../../api/live/use_live";
import { counted, formatBytes } from "../../base/bytes";
import { categoryColour, groupNamed } from "../../model/category";
import { openPlace } from "../../widgets/finding/place";
import type { RowCell } from "../../widgets/row_table/columns";
import { Waiting } from "../../widgets/state/state";
import { AnswerTable } from "../shared/table/answer_table";
import type { ViewProps } from "../shared/view_props";

export function SnapshotFiles(props: {
  readonly view: ViewProps;
  readonly blamed: readonly string[];
}) {
  const { view, blamed } = props;
  const query = { run: view.run.id, rank: view.ranks.rank };
  const { data, error } = useLive(view.client, "snapshot_files", query, view.pollMs);
  const cells = useMemo(() => {
    const files = data?.files ?? [];
    const scale = Math.max(...files.map((file) => file.reservedBytes ?? 0), 1);
    return {
      categories: (row: number): RowCell => {
        const file = files[row];
        return file === undefined ? { text: "" } : categoryBar(view, file, scale);
      },
    };
  }, [data, view.theme, view.byteUnit]);
  const culprits = useMemo(() => new Set([...blamed, OUT_OF_MEMORY]), [blamed.join()]);
  if (data === null) {
    return <Waiting error={error} hasContent={false} blocksPx={[120]} />;
  }
  if (data.files.length === 0) return null;
  const rest = data.numFiles - data.files.length;
  return (
    <section
      class="snapshot-files"
      aria-label="Snapshots"
      aria-busy={data.stillReading}
    >
      <AnswerTable
        view={view}
        table={data.table}
        culprits={culprits}
        cells={cells}
        onSelect={(row) => {
          const file = data.files[row];
          if (file !== undefined) openAtPeak(view, file);
        }}
      />
      {rest > 0 && <p class="quiet">And {counted(rest, "older file")}.</p>}
    </section>
  );
}

const OUT_OF_MEMORY = "out of memory";

function categoryBar(
  { theme, byteUnit }: ViewProps,
  { categories }: FilePeak,
  scaleBytes: number,
): RowCell {
  const content = (
    <span class="snapshot-bar">
      {categories.map(({ category, bytes }) => (
        <span
          key={category}
          title={`${category}: ${formatBytes(bytes, byteUnit)}`}
          style={{
            width: `${((100 * bytes) / scaleBytes).toFixed(2)}%`,
            background: categoryColour(theme, groupNamed(category)),
          }}
        />
      ))}
    </span>
  );
  return { text: "", content };
}

function openAtPeak(view: ViewProps, { reference, device, moment }: FilePeak): void {
  const place = { page: "blocks", label: "", step: null, source: null } as const;
  const { rank } = view.ranks;
  openPlace({ ...place, rank, history: reference.id, device, moment }, view);
}
