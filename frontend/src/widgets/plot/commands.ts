/** A chart's keys as those of its page. */

import { commandsOf, useCommands } from "../../base/commands";
import type { ExportShell } from "../export/export_menu";

export interface PlotPage {
  /** The view; of it, where commands go and what tells the user something. */
  readonly view: ExportShell;
  /** Where help lists the keys; absent: the page's keys are another chart's. */
  readonly group?: string;
}

export interface PlotActions {
  readonly fit: () => void;
  /** -1 zooms in, +1 out. */
  readonly zoom: (sign: number) => void;
  readonly pan: (sign: number) => void;
  readonly toPeak: () => boolean;
  /** False where there is no further peak on that side. */
  readonly toNextPeak: (side: -1 | 1) => boolean;
}

export function usePlotCommands(
  page: PlotPage | undefined,
  { fit, zoom, pan, toPeak, toNextPeak }: PlotActions,
): void {
  useCommands(
    page?.view.commands,
    () => {
      const group = page?.group;
      if (group === undefined) return [];
      const toNext = (side: -1 | 1): void => {
        if (toNextPeak(side)) return;
        page?.view.say(`No ${side > 0 ? "later" : "earlier"} peak is drawn`);
      };
      return [
        ...commandsOf("range", group, [
          ["fit", "Show everything", fit, "f"],
          ["in", "Zoom in", () => zoom(-1), "w"],
          ["out", "Zoom out", () => zoom(1), "s"],
          ["left", "Move left", () => pan(-1), "a"],
          ["right", "Move right", () => pan(1), "d"],
        ]),
        ...commandsOf("peak", group, [
          ["highest", "Jump to the peak", toPeak, "p"],
          ["before", "Previous peak", () => toNext(-1), "["],
          ["after", "Next peak", () => toNext(1), "]"],
        ]),
      ];
    },
    [page?.group],
  );
}
