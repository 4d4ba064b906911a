/** What keys and buttons do to the moment that is looked at. */

import type { BlockController } from "../../../widgets/block_stack/controller";
import type { DrawnMarks } from "../../../widgets/block_stack/marks";
import { momentWords, peakOf, type MomentPlace } from "../history/moment";
import { SAME_RUN } from "../history/params";
import type { ViewProps } from "../../shared/view_props";
import type { AllocationActions } from "./commands";
import type { AllocationsParams } from "./state/params";

export interface ActionInputs {
  readonly view: Pick<ViewProps, "say" | "setParams" | "showPage">;
  readonly params: AllocationsParams;
  readonly place: MomentPlace;
  readonly controller: BlockController | null;
  readonly marks: DrawnMarks;
  /** The moment that is shown while nothing points. */
  readonly anchor: number;
}

export interface Actions {
  readonly pin: (moment: number) => void;
  /** Under the pointer, else the anchor. */
  readonly shownMoment: () => number;
  readonly actions: AllocationActions;
  /** Let go of something: what was chosen last goes first. */
  readonly clear: () => void;
}

export function momentActions(inputs: ActionInputs): Actions {
  const { view, params, place, controller, marks, anchor } = inputs;
  const { setParams } = view;
  const { history, device } = place;
  const pin = (moment: number): void => {
    setParams(momentWords(moment, place));
    controller?.reveal(moment);
    // What is pinned now is what the next key starts from.
    controller?.clearCursor();
  };
  const shownMoment = (): number => controller?.hovered.peek()?.moment ?? anchor;
  const ooms = marks.points.filter(({ kind }) => kind === "oom");
  const actions: AllocationActions = {
    toPeak: () => {
      const peak = peakOf(device);
      if (peak !== undefined) pin(peak.moment);
    },
    toOom: () => {
      const from = params.moment ?? -2;
      const next = ooms.find(({ moment }) => moment > from) ?? ooms[0];
      if (next === undefined) view.say("No out-of-memory error is in this history");
      else pin(next.moment);
    },
    compare: () => {
      const marked = params.mark;
      view.showPage("compare", {
        part: null,
        history,
        history_device: device.device.toString(),
        moment: shownMoment().toString(),
        a_run: SAME_RUN,
        a_history: marked === null ? null : history,
        a_device: marked === null ? null : device.device.toString(),
        a_moment: marked?.toString() ?? null,
      });
    },
    mark: () => {
      const moment = shownMoment();
      const again = moment === params.mark;
      setParams({
        mark: again ? null : moment.toString(),
        flame: again ? null : "difference",
      });
    },
  };
  function clear(): void {
    if (params.life !== null) setParams({ life: null });
    else if (params.range !== null) setParams({ r0: null, r1: null });
    else if (params.stack !== null) setParams({ stack: null });
    else if (params.only !== "") setParams({ only: null });
    else if (params.find !== "") setParams({ find: null });
    else if (params.moment !== null) setParams({ moment: null });
    else if (params.mark !== null) setParams({ mark: null, flame: null });
    controller?.clearCursor();
  }
  return { pin, shownMoment, actions, clear };
}
