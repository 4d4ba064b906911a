/**
 * On tabs of steps and calls: the moment pinned in Blocks or Segments, and the way
 * back.
 */

import { formatInteger } from "../../../base/bytes";
import { TextButton } from "../../shared/controls/choices";
import type { ViewProps } from "../../shared/view_props";
import { momentName, readMemory, stepAt } from "./moment";
import { chosenDevice, useHistory } from "./use_history";

/**
 * For tabs of steps and calls: the step of the moment pinned in Blocks or Segments;
 * null: no pin, so no request.
 */
export function useMomentStep(view: Pick<ViewProps, "client" | "run" | "params">) {
  const state = readMemory(view.params);
  const { history, moment } = state;
  const asked = moment === null || history === "" ? null : history;
  const { answer } = useHistory(view.client, view.run.id, asked);
  const device = chosenDevice(answer?.facts ?? null, state.device);
  if (asked === null || moment === null || device === null) return null;
  return {
    moment,
    step: stepAt(device, moment) ?? answer?.reference.step ?? null,
    name: momentName(device, moment),
  };
}

export function Pinned(props: {
  readonly view: ViewProps;
  readonly pinned: ReturnType<typeof useMomentStep>;
  readonly step: number | null;
  /** Why another step is shown; null: the user chose it. */
  readonly absent: string | null;
}) {
  const { view, pinned, step, absent } = props;
  if (pinned === null) return null;
  const stepText =
    pinned.step === null ? "no step" : `step ${formatInteger(pinned.step)}`;
  const shown = step === null ? "another call" : `step ${formatInteger(step)}`;
  const why = absent === null ? "" : `${absent}: `;
  return (
    <p class="quiet">
      Pinned in Blocks: {pinned.name || `event ${formatInteger(pinned.moment)}`},{" "}
      {stepText}. {pinned.step !== step && `${why}${shown} is shown. `}
      <TextButton press={() => view.showPage("blocks", {})}>Show in Blocks</TextButton>
    </p>
  );
}
