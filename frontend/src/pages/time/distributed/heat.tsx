import { useRef } from "preact/hooks";
import type { TableRows } from "../../../api/types.gen";
import type { CellFacts } from "../../../widgets/heatmap/layout";
import { useWidth } from "../../../widgets/plot/canvas";
import { Segmented } from "../../shared/controls/choices";
import { RankHeatmap } from "../../shared/heat_answers";
import { oneOf, usePageState } from "../../shared/page_state";
import type { ViewProps } from "../../shared/view_props";
import { columnOf, numbersOf } from "../../shared/table/columns";

/** Parts that distinguish ranks come first. */
const PARTS = ["communication", "overlap", "computation", "other", "step"] as const;
const WORDS = { part: oneOf("rheat", PARTS, null) };

export function RankHeat(props: {
  readonly view: ViewProps;
  readonly cycle: number | null;
  readonly ranks: TableRows;
  readonly numOpening: number;
  readonly onPick: (rank: number, cell: CellFacts) => void;
}) {
  const { view, cycle, ranks } = props;
  const [state, setState] = usePageState(view, WORDS);
  // With nothing exposed, that picture does not distinguish ranks.
  const isExposed = numbersOf(ranks, "communication_ms").some((ms) => ms > 0);
  const usual = isExposed ? "communication" : "step";
  const part = state.part ?? usual;
  const box = useRef<HTMLDivElement>(null);
  const px = useWidth(box);
  const wordsOf = (name: string): readonly [string, string] => {
    const column = columnOf(ranks, `${name}_ms`);
    return [column?.title ?? name, column?.help ?? ""];
  };
  const [title] = wordsOf(part);
  return (
    <div ref={box}>
      <div class="row">
        <Segmented
          label="What the cells of the heatmap are"
          title="Compare"
          options={PARTS}
          chosen={part}
          labels={wordsOf}
          onChoose={(option) =>
            setState({ part: option === usual ? null : option }, "push")
          }
        />
        <span class="quiet">A click on a cell chooses its rank and step</span>
      </div>
      <RankHeatmap
        view={view}
        px={px}
        route="distributed_heatmap"
        subject={{ cycle, part }}
        label={() => `${title} time by rank and profiled step`}
        onPick={props.onPick}
        pooled="farthest"
        empty={
          <p class="quiet">
            {props.numOpening === 0
              ? `No rank has ${title.toLowerCase()} time in its profiled steps.`
              : "The first traces are being read."}
          </p>
        }
      />
    </div>
  );
}
