/** The keys and exports of the Steps view. */

import { commandsOf, type Commands } from "../../../base/commands";
import { useCommands } from "../../../base/use_commands";
import { exportCommands } from "../../../widgets/export/export_commands";
import { ALL_FORMATS, type ExportSource } from "../../../widgets/export/source";
import type { XRange } from "../../../widgets/line_chart/types";
import type { PartStackHandle } from "../../../widgets/part_stack/types";
import { peakCommands } from "../../shared/range/peaks";
import { rangeCommands } from "../../shared/range/commands";

interface Exporter {
  readonly current: ExportSource | null;
}

export interface StepsCommands {
  readonly extent: XRange;
  readonly shown: XRange | null;
  readonly setRange: (range: XRange | null) => void;
  /** The step that is pinned. */
  readonly step: number | null;
  readonly unpin: () => void;
  readonly say: (sentence: string) => void;
  readonly handle: { readonly current: PartStackHandle | null };
  readonly stack: Exporter;
  /** null where there is no heatmap. */
  readonly map: Exporter | null;
}

export function useStepsCommands(commands: Commands, of: StepsCommands): void {
  const { extent, shown, setRange, handle, stack, map, say } = of;
  const exporting = (subject: string, source: Exporter) =>
    exportCommands({
      view: "steps",
      subject,
      formats: ALL_FORMATS,
      source: () => source.current,
      say,
    });
  const toNext = (side: -1 | 1): void => {
    if (handle.current?.toNextSlow(side) === false) {
      say(side > 0 ? "No later slow step is drawn" : "No earlier slow step is drawn");
    }
  };
  const unpin = (): void => {
    if (of.step !== null) of.unpin();
  };
  useCommands(
    commands,
    () => [
      ...peakCommands("Steps", {
        toHighest: () => handle.current?.toSlowest(),
        toNext,
      }),
      ...rangeCommands("Steps", { extent, range: shown, setRange }),
      ...commandsOf("steps", "Steps", [
        ["unpin", "Close the pinned step", unpin, "Escape"],
      ]),
      ...exporting("stack", stack),
      ...(map === null ? [] : exporting("heatmap", map)),
    ],
    [map !== null],
  );
}
