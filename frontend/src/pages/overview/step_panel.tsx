import type { StragglersResponse } from "../../api/types.gen";
import { formatShare } from "../../base/bytes";
import { formatSeconds } from "../../base/durations";
import { formatExact } from "../../model/words/quantity";
import { BarRows, type BarRow } from "../../widgets/bar_rows/bar_rows";
import { Icon } from "../../widgets/icon/icon";
import type { ViewProps } from "../shared/view_props";
import { PartBar, partsOfStep } from "../time/profiled/part_bar";

/** What the time of a step goes to, as Steps has it. */
export function StepPanel(props: {
  readonly view: ViewProps;
  readonly answer: StragglersResponse;
}) {
  const { view, answer } = props;
  const { stepSeconds: seconds } = answer;
  if (seconds === null) return null;
  const parts = partsOfStep(answer, view.theme, "usual")
    .filter(({ value }) => value > 0)
    .sort((a, b) => b.value - a.value);
  return (
    <section aria-label="What a step's time goes to">
      <header class="row">
        <h2 title={answer.sentence}>
          A step takes {formatSeconds(seconds)}
          {answer.numRanks > 1 && <small class="quiet"> on the median rank</small>}
        </h2>
        <button
          type="button"
          class="text-button end"
          onClick={() => view.showPage("steps", {})}
        >
          Show the steps
          <Icon name="right" sizePx={14} />
        </button>
      </header>
      <PartBar label="" parts={parts} />
      <BarRows
        label="Parts of a step"
        rows={parts.map(({ name, label, help, colour, value }): BarRow => ({
          key: name,
          label,
          title: help,
          share: value / seconds,
          background: colour,
          value: formatSeconds(value),
          exact: formatExact(value, "seconds"),
          note: formatShare(value, seconds),
        }))}
      />
    </section>
  );
}
