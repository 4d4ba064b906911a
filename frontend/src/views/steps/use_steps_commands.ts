/** The keys and exports of the Steps view. */

import { useRef } from "preact/hooks";
import type { Command, Commands } from "../../base/commands";
import { useCommands } from "../../base/use_commands";
import { exportCommands } from "../../widgets/export/export_commands";
import { ALL_FORMATS, type ExportSource } from "../../widgets/export/source";
import type { XRange } from "../../widgets/line_chart/types";
import type { PartStackHandle } from "../../widgets/part_stack/types";
import { peakCommands } from "../range/peaks";
import { rangeCommands } from "../range/commands";

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
  // Registered once; each runs with what was drawn last.
  const latest = useRef(of);
  latest.current = of;
  const hasMap = of.map !== null;
  const make = (): readonly Command[] => {
    const exporting = (subject: string, source: () => ExportSource | null) =>
      exportCommands({
        view: "steps",
        subject,
        formats: ALL_FORMATS,
        source,
        say: (sentence) => latest.current.say(sentence),
      });
    return [
      ...peakCommands("Steps", {
        toHighest: () => latest.current.handle.current?.toSlowest(),
        toNext: (side) => {
          if (latest.current.handle.current?.toNextSlow(side) === false) {
            latest.current.say(
              side > 0
                ? "No later slow step is drawn"
                : "No earlier slow step is drawn",
            );
          }
        },
      }),
      ...rangeCommands("Steps", {
        extent: () => latest.current.extent,
        range: () => latest.current.shown,
        setRange: (range) => latest.current.setRange(range),
      }),
      {
        id: "steps.unpin",
        label: "Close the pinned step",
        group: "Steps",
        key: "Escape",
        run: () => {
          if (latest.current.step !== null) latest.current.unpin();
        },
      },
      ...exporting("stack", () => latest.current.stack.current),
      ...(hasMap
        ? exporting("heatmap", () => latest.current.map?.current ?? null)
        : []),
    ];
  };
  useCommands(commands, make, [hasMap]);
}
