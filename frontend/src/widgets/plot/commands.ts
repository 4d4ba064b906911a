/** A chart's keys and exports as those of its page. */

import { commandsOf, type Commands } from "../../base/commands";
import { useCommands } from "../../base/use_commands";
import { exportCommands } from "../export/export_commands";
import { ALL_FORMATS, type ExportSource } from "../export/source";

export interface PlotPage {
  /** The view; of it, where commands go and what tells the user something. */
  readonly view: {
    readonly commands: Commands;
    readonly say: (sentence: string) => void;
  };
  /** The view's word. */
  readonly name: string;
  /** What is exported: "chart". */
  readonly subject: string;
  /** Where help lists the keys; absent: the page's keys are another chart's. */
  readonly group?: string;
}

export interface PlotActions {
  readonly fit: () => void;
  /** -1 zooms in, +1 out. */
  readonly zoom: (sign: number) => void;
  readonly pan: (sign: number) => void;
  readonly toPeak: () => void;
  /** False where there is no further peak on that side. */
  readonly toNextPeak: (side: -1 | 1) => boolean;
}

export function usePlotCommands(
  page: PlotPage | undefined,
  source: ExportSource,
  { fit, zoom, pan, toPeak, toNextPeak }: PlotActions,
): void {
  useCommands(
    page?.view.commands,
    () => {
      if (page === undefined) return [];
      const { view, name, subject, group } = page;
      const { say } = view;
      const toNext = (side: -1 | 1): void => {
        if (toNextPeak(side)) return;
        say(side > 0 ? "No later peak is drawn" : "No earlier peak is drawn");
      };
      const keys =
        group === undefined
          ? []
          : [
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
      const formats = ALL_FORMATS;
      const files = { view: name, subject, formats, source: () => source, say };
      return [...keys, ...exportCommands(files)];
    },
    [page?.group, page?.name, page?.subject],
  );
}
