/** All that the rank held at the moment shown: by modules, and by none. */

import type { ModulesResponse, ModuleState } from "../../../api/types.gen";
import { formatBytesExact, formatInteger, type ByteUnit } from "../../../base/bytes";
import { categoryLabel } from "../../../model/category";
import { formatQuantity } from "../../../model/words/quantity";

/** Categories of the rest that are named; of more, the largest. */
const MOST_NAMED = 3;

interface SplitProps {
  readonly data: ModulesResponse;
  readonly byteUnit: ByteUnit;
}

/** Where the rest lies: `other 10.1 GiB, input 64.0 KiB`. */
export function restWords({ data, byteUnit }: SplitProps): string {
  const rest = [...(data.split?.unattributed ?? [])].sort((a, b) => b.bytes - a.bytes);
  const words = rest
    .slice(0, MOST_NAMED)
    .map(
      ({ name, bytes }) =>
        `${categoryLabel(name).toLowerCase()} ${formatQuantity(bytes, "bytes", byteUnit)}`,
    );
  if (rest.length > MOST_NAMED) words.push("…");
  return words.join(", ");
}

const AT: Partial<Record<ModuleState, string>> = {
  window_start: "at the start of",
  window_peak: "at the peak of",
  before_optimizer: "before the optimizer in",
  after_optimizer: "after the optimizer in",
  window_end: "at the end of",
};

/** `on rank 19 at the peak of step 199`. */
export function momentWords(data: ModulesResponse): string {
  const found = data.windows.find((one) => one.id === data.window);
  let call = "the tracked call";
  if (found?.function === "step" && found.step !== null) {
    call = `step ${formatInteger(found.step)}`;
  } else if (found !== undefined && found.function !== "") {
    call = `${found.function}, call ${formatInteger(found.iteration)}`;
  }
  return `on rank ${data.rank ?? 0} ${AT[data.state] ?? "in"} ${call}`;
}

export function Split(props: SplitProps) {
  const { data, byteUnit } = props;
  const { split } = data;
  if (split === null) return null;
  const size = (bytes: number) => (
    <strong title={formatBytesExact(bytes)}>
      {formatQuantity(bytes, "bytes", byteUnit)}
    </strong>
  );
  const rest = restWords(props);
  return (
    <p class="modules-split">
      <span>
        <span class="modules-split-total">{size(split.totalBytes)}</span> tracked{" "}
        {momentWords(data)}
      </span>
      <span>{size(split.heldBytes)} in modules</span>
      {split.unattributedBytes !== 0 && (
        <span>
          {size(split.unattributedBytes)} not attributed to a module
          {rest === "" ? "" : <span class="quiet"> ({rest})</span>}
        </span>
      )}
    </p>
  );
}
