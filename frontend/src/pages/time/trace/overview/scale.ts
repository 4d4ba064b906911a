/** How tall the overview's columns are: one spike must not flatten all the others. Pure. */

/** Of the columns with any work, so many decide the scale; the rest may be spikes. */
const USUAL = 0.95;
/** A column that is at most so many times the usual is no spike. */
const LEAST_SPIKE = 2;
/** What is no spike is not cut: room above the usual. */
const ROOM = 1.2;

export interface OverviewScale {
  /** What a column as tall as the strip stands for; those above are cut off. */
  readonly top: number;
  readonly most: number;
  /** The column of the most. */
  readonly mostAt: number;
  readonly numCut: number;
}

/** Linear; cut where few columns stand far above the others. */
export function overviewScale(totals: ArrayLike<number>): OverviewScale {
  const busy: number[] = [];
  let [most, mostAt] = [0, 0];
  for (let at = 0; at < totals.length; at += 1) {
    const total = totals[at] ?? 0;
    if (total > 0) busy.push(total);
    if (total > most) [most, mostAt] = [total, at];
  }
  const sorted = Float64Array.from(busy).sort();
  const usual = sorted[Math.max(0, Math.ceil(USUAL * sorted.length) - 1)] ?? 0;
  if (!(most > LEAST_SPIKE * usual)) return { top: most, most, mostAt, numCut: 0 };
  const top = ROOM * usual;
  const numCut = busy.reduce((sum, one) => sum + Number(one > top), 0);
  return { top, most, mostAt, numCut };
}

/** What the heights say, for who points at the strip; `when`: how long after the
 * beginning a column is. */
export function scaleWords(
  scale: OverviewScale,
  when: (column: number) => string,
): string {
  if (!(scale.most > 0)) return "";
  const words = `Height: how many slices are under way at once, up to ${round(scale.top)}`;
  if (scale.numCut === 0) return words;
  return `${words}. Columns with a gap near their top go higher and are cut off: up to ${round(scale.most)}, ${when(scale.mostAt)} after the beginning`;
}

function round(value: number): string {
  return value.toLocaleString("en", { maximumSignificantDigits: 2 });
}
