/** What the Timeline can do by key and palette besides zooming and exporting. */

import type { Command } from "../../base/commands";

export interface PeakActions {
  readonly toHighest: () => void;
  /** To the local peak before (-1) or after (1) the cursor. */
  readonly toNext: (side: -1 | 1) => void;
}

export function peakCommands({ toHighest, toNext }: PeakActions): readonly Command[] {
  const command = (
    id: string,
    label: string,
    key: string,
    run: () => void,
  ): Command => ({
    id: `timeline.${id}`,
    label,
    group: "Timeline",
    key,
    run,
  });
  return [
    command("peak", "Jump to the peak", "p", toHighest),
    command("peak.before", "Previous peak", "[", () => {
      toNext(-1);
    }),
    command("peak.after", "Next peak", "]", () => {
      toNext(1);
    }),
  ];
}
