/** The sentence above a table of a trace: which row takes most, and of how much. */

import { formatSeconds } from "../../../base/durations";
import { shortNames } from "./kernel_name";

export interface Shares {
  readonly names: readonly string[];
  readonly ms: Float64Array;
  /** Of all rows, sent or not. */
  readonly sumMs: number;
  /** "of the kernels’ time". */
  readonly of: string;
}

/** "" where nothing took any time. */
export function mostWords({ names, ms, sumMs, of }: Shares): string {
  let most = -1;
  ms.forEach((value, row) => {
    if (value > (ms[most] ?? 0)) most = row;
  });
  const [value, name] = [ms[most] ?? NaN, shortNames(names)[most]];
  if (name === undefined || !(sumMs > 0)) return "";
  const share = ((100 * value) / sumMs).toFixed(value < sumMs ? 1 : 0);
  return `${name} takes ${share} % ${of}: ${formatSeconds(value / 1e3)} of ${formatSeconds(sumMs / 1e3)}.`;
}

export function Most(props: { readonly shares: Shares; readonly rest: string }) {
  const words = mostWords(props.shares);
  return (
    <p class="trace-sum">
      {words !== "" && <strong>{words} </strong>}
      <span class={words === "" ? "" : "quiet"}>{props.rest}</span>
    </p>
  );
}
