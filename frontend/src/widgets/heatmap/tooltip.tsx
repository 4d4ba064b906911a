/** The cell under the pointer in words and numbers. */

import type { Unit } from "../../api/types.gen";
import { formatInteger, type ByteUnit } from "../../base/bytes";
import { formatExact, formatQuantity } from "../../model/words/quantity";
import { ChartTip, type TipPlace } from "../tip/chart_tip";
import type { CellFacts } from "./layout";
import type { Pooled } from "./types";

export interface CellWords {
  readonly rank: string;
  readonly steps: string;
  readonly value: string;
  /** null where nothing was recorded. */
  readonly exact: string | null;
  readonly share: string | null;
}

const POOLED_WORDS: Readonly<Record<Pooled, string>> = {
  highest: "highest",
  farthest: "farthest from the middle rank",
};

/** Units that have no parts: what lies between is of the cells' own steps. */
const WHOLE: ReadonlySet<Unit> = new Set<Unit>(["bytes", "count"]);

export function cellWords(
  facts: CellFacts,
  unit: Unit,
  byteUnit: ByteUnit,
  capacity: number | null,
  diverging = false,
  pooled: Pooled = "highest",
): CellWords {
  const { firstRank, lastRank, firstStep, lastStep, value, tolerance } = facts;
  const recorded = Number.isFinite(value);
  const one = firstStep === lastStep;
  return {
    rank:
      firstRank === lastRank
        ? `rank ${firstRank}`
        : `${POOLED_WORDS[pooled]} of ranks ${firstRank}–${lastRank}`,
    steps: one
      ? `step ${formatInteger(firstStep)}`
      : `highest of steps ${formatInteger(firstStep)}–${formatInteger(lastStep)}`,
    value: !recorded
      ? "not recorded"
      : `${diverging && value > 0 ? "+" : ""}${formatQuantity(value, unit, byteUnit)}`,
    exact:
      // Beside what is as usual, digits mean nothing.
      recorded && !diverging
        ? `${formatExact(WHOLE.has(unit) ? Math.round(value) : value, unit)} ± ${formatQuantity(tolerance, unit)}`
        : null,
    share:
      recorded && capacity !== null && capacity > 0
        ? `${((value / capacity) * 100).toFixed(1)} % of the capacity`
        : null,
  };
}

export function CellTip(props: { readonly words: CellWords; readonly at: TipPlace }) {
  const { words } = props;
  return (
    <ChartTip at={props.at} belowPx={12}>
      <div class="chart-tip-x">{words.value}</div>
      {words.share !== null && <div>{words.share}</div>}
      {words.exact !== null && <div class="chart-exact">{words.exact}</div>}
      <div>{words.rank}</div>
      <div>{words.steps}</div>
    </ChartTip>
  );
}
