import type { TableRows } from "../../../api/types.gen";
import { formatSeconds } from "../../../base/durations";
import { Drawer } from "../../shared/panels/drawer";
import type { ViewProps } from "../../shared/view_props";
import { columnOf, partsOf } from "../profiled/answer_table";
import { PartBar, PartWays } from "../profiled/part_bar";

export function RankInspector(props: {
  readonly view: ViewProps;
  readonly ranks: TableRows;
  readonly row: number;
  /** null: the mean of all. */
  readonly step: number | null;
}) {
  const { view, ranks, row, step } = props;
  const rank = columnOf(ranks, "rank")?.numbers[row] ?? NaN;
  const parts = partsOf(ranks, row, view.theme);
  const total = (columnOf(ranks, "step_ms")?.numbers[row] ?? NaN) / 1e3;
  const ways: Readonly<Record<string, readonly [string, () => void]>> = {
    computation_ms: ["Operators", () => view.showPage("operators", {})],
    other_ms: ["Trace", () => view.showPage("trace", { w0: null, w1: null })],
  };
  return (
    <aside class="inspector" aria-label="Inspector">
      <Drawer
        label="The chosen rank"
        title={`Rank ${rank} · ${step === null ? "mean step" : `step ${step}`} ${formatSeconds(total)}`}
        actions={
          <button
            type="button"
            class="text-button"
            onClick={() => view.showPage("kernels", {})}
          >
            Show its kernels
          </button>
        }
        close={() => view.chooseRank(null)}
      >
        <PartBar label="" parts={parts} longest={total} />
        <PartWays
          parts={parts.map((one) => {
            const [where, lead] = ways[one.name] ?? [
              "the collectives below",
              () => view.setParams({ cfind: String(rank) }, "push"),
            ];
            return {
              ...one,
              help: `${one.help} Opens ${where} of rank ${rank}.`,
              lead,
            };
          })}
        />
      </Drawer>
    </aside>
  );
}
