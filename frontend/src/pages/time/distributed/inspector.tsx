import type { TableRows } from "../../../api/types.gen";
import { formatSeconds } from "../../../base/durations";
import { TextButton } from "../../shared/controls/choices";
import { Drawer } from "../../shared/panels/drawer";
import type { ViewProps } from "../../shared/view_props";
import { numbersOf, partsOf } from "../profiled/answer_table";
import { PartBar, PartWays } from "../profiled/part_bar";

export function RankInspector(props: {
  readonly view: ViewProps;
  readonly ranks: TableRows;
  readonly row: number;
  /** null: the mean of all. */
  readonly step: number | null;
}) {
  const { view, ranks, row, step } = props;
  const rank = numbersOf(ranks, "rank")[row] ?? NaN;
  const parts = partsOf(ranks, row, view.theme);
  const total = (numbersOf(ranks, "step_ms")[row] ?? NaN) / 1e3;
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
          <TextButton press={() => view.showPage("kernels", {})}>
            Show its kernels
          </TextButton>
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
