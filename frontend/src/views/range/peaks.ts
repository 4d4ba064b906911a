/** Going to peaks by key and palette: the same on every view that draws a line of them. */

import type { Command } from "../../base/commands";

export interface PeakActions {
  readonly toHighest: () => void;
  /** To the local peak before (-1) or after (1) the cursor. */
  readonly toNext: (side: -1 | 1) => void;
}

export function peakCommands(
  group: string,
  { toHighest, toNext }: PeakActions,
): readonly Command[] {
  const command = (
    id: string,
    label: string,
    key: string,
    run: () => void,
  ): Command => ({ id: `peak.${id}`, label, group, key, run });
  return [
    command("highest", "Jump to the peak", "p", toHighest),
    command("before", "Previous peak", "[", () => toNext(-1)),
    command("after", "Next peak", "]", () => toNext(1)),
  ];
}
