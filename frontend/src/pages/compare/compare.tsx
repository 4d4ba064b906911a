/** Compare: two runs, ranks or moments; the ranks of one run; the times of two traces. */

import { useMemo, useRef } from "preact/hooks";
import { useCommands } from "../../base/use_commands";
import { exportCommands } from "../../widgets/export/export_commands";
import type { ExportSource } from "../../widgets/export/source";
import { Segmented } from "../shared/controls/choices";
import type { ViewProps } from "../shared/view_props";
import { PART_WORDS, PARTS, readCompare } from "./params";
import { ProfilesPart } from "./profiles/part";
import { RanksPart } from "./ranks_part";
import { Two } from "./two";
import "../memory/history/history.css";
import "./compare.css";

export function CompareView(props: ViewProps) {
  // Traces alone have no allocator histories.
  const usual = props.run.madeOf === "traces" ? "profiles" : "two";
  const params = useMemo(() => readCompare(props.params, usual), [props.params, usual]);
  const exporter = useRef<ExportSource | null>(null);
  useCommands(props.commands, () =>
    exportCommands({
      view: "compare",
      subject: "comparison",
      formats: ["csv", "json"],
      source: () => exporter.current,
      say: props.say,
    }),
  );
  const part = { view: props, params, exporter };
  return (
    <div class="history">
      <div class="compare-parts">
        <Segmented
          label="What is compared"
          options={PARTS}
          chosen={params.part}
          words={(one) => PART_WORDS[one]}
          onChoose={(one) =>
            props.setParams({ part: one === usual ? null : one }, "push")
          }
        />
      </div>
      {params.part === "two" && <Two {...part} />}
      {params.part === "profiles" && <ProfilesPart {...part} />}
      {params.part === "ranks" && (
        <RanksPart view={props} history={params.b.history} exporter={exporter} />
      )}
    </div>
  );
}
