import { counted } from "../../../base/bytes";
import { asSentence, sourceLabel } from "../../../model/words/source_label";
import { Facts } from "../../../widgets/facts/facts";

interface AbsentItem {
  readonly source: string;
  readonly reason: string;
  readonly remedy: string;
  readonly note?: string;
}

export function AbsentList({ absent }: { readonly absent: readonly AbsentItem[] }) {
  if (absent.length === 0) return null;
  return (
    <details>
      <summary>{counted(absent.length, "source")} not recorded</summary>
      <Facts
        rows={absent.map(({ source, note = "", reason, remedy }) => [
          `${sourceLabel(source)} ${note}`,
          asSentence(reason),
          asSentence(remedy),
        ])}
      />
    </details>
  );
}
