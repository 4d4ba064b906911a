/** Going to peaks by key and palette: the same on every view that draws a line of them. */

import { commandsOf, type Command } from "../../../base/commands";

export interface PeakActions {
  readonly toHighest: () => void;
  /** To the local peak before (-1) or after (1) the cursor. */
  readonly toNext: (side: -1 | 1) => void;
}

export function peakCommands(
  group: string,
  { toHighest, toNext }: PeakActions,
): readonly Command[] {
  return commandsOf("peak", group, [
    ["highest", "Jump to the peak", toHighest, "p"],
    ["before", "Previous peak", () => toNext(-1), "["],
    ["after", "Next peak", () => toNext(1), "]"],
  ]);
}
