/**
 * On tabs of steps and calls: the moment pinned in Blocks or Segments, and the way
 * back.
 */

import { formatInteger } from "../../../base/bytes";
import { TextButton } from "../../shared/controls/choices";
import type { ViewProps } from "../../shared/view_props";
import type { MomentStep } from "./moment";

export function Pinned(props: {
  readonly view: ViewProps;
  readonly pinned: MomentStep | null;
  readonly step: number | null;
  /** Why another step is shown; null: the user chose it. */
  readonly absent: string | null;
}) {
  const { view, pinned, step, absent } = props;
  if (pinned === null) return null;
  const at = pinned.step === null ? "no step" : `step ${formatInteger(pinned.step)}`;
  const shown = step === null ? "another call" : `step ${formatInteger(step)}`;
  const why = absent === null ? "" : `${absent}: `;
  return (
    <p class="quiet">
      Pinned in Blocks: {pinned.name || `event ${formatInteger(pinned.moment)}`}, {at}.{" "}
      {pinned.step !== step && `${why}${shown} is shown. `}
      <TextButton press={() => view.showPage("blocks", {})}>Show in Blocks</TextButton>
    </p>
  );
}
