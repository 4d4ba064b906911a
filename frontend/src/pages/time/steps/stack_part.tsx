/** The stacked time of each step, the whole run below it, and what is drawn. */

import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import type { StepsResponse } from "../../../api/types.gen";
import { formatInteger } from "../../../base/bytes";
import { originOf } from "../../../model/words/origin";
import { asSentence } from "../../../model/words/source_label";
import type { ExportSource } from "../../../widgets/export/source";
import type { XRange } from "../../../widgets/line_chart/types";
import { Minimap, MINIMAP_PX } from "../../../widgets/minimap/minimap";
import { topOf } from "../../../widgets/part_stack/layout";
import { drawSilhouette } from "../../../widgets/part_stack/paint";
import { PartStack } from "../../../widgets/part_stack/part_stack";
import type { PartStackHandle } from "../../../widgets/part_stack/types";
import type { ViewProps } from "../../shared/view_props";

export const STACK_PX = 260;

const TITLES: Readonly<Record<StepsResponse["of"], string>> = {
  rank: "Step time by part",
  worst: "Step time by part, of the slowest rank of each step",
  median: "Step time by part, of the median rank of each step",
};

export function Stack(props: {
  readonly view: ViewProps;
  readonly answer: StepsResponse;
  readonly whole: StepsResponse | null;
  readonly stale: boolean;
  readonly extent: XRange;
  readonly range: XRange | null;
  readonly setRange: (range: XRange | null) => void;
  readonly pinned: number | null;
  readonly pin: (step: number) => void;
  readonly handle: { current: PartStackHandle | null };
  readonly exporter: { current: ExportSource | null };
  readonly controls: ComponentChildren;
}) {
  const { view, answer, whole, extent } = props;
  const { theme } = view;
  const drawMap = useMemo(
    () =>
      whole === null
        ? null
        : (context: CanvasRenderingContext2D, widthPx: number): void => {
            const top = topOf(whole, extent.low, extent.high, false).value;
            drawSilhouette(context, whole, extent, top, theme, {
              widthPx,
              heightPx: MINIMAP_PX,
            });
          },
    [whole, extent.low, extent.high, theme],
  );
  const title =
    answer.of === "rank" && view.run.numRanks > 1
      ? `${TITLES.rank}, rank ${answer.rank ?? "–"}`
      : TITLES[answer.of];
  return (
    <section class={props.stale ? "steps-stack stale" : "steps-stack"}>
      <PartStack
        label={title}
        answer={answer}
        extent={extent}
        range={props.range}
        onRange={props.setRange}
        cursor={view.cursor}
        pinned={props.pinned}
        onPick={props.pin}
        theme={theme}
        plotPx={STACK_PX}
        origin={originOf(view.run)}
        about={{ of: answer.of, rank: answer.rank }}
        handle={props.handle}
        exporter={props.exporter}
        controls={props.controls}
      />
      {drawMap !== null && (
        <Minimap
          label="The whole run; drag to choose the part that is shown"
          draw={drawMap}
          extent={extent}
          range={props.range}
          onRange={props.setRange}
        />
      )}
      <p class="steps-facts quiet">
        <span>{grainWords(answer)}</span>
        {answer.parts.length === 0 && <span>{noPartsWords(answer)}</span>}
        <span>Click a step for its ranks</span>
      </p>
    </section>
  );
}

/** What a column stands for. */
export function grainWords({ stepsPerColumn, exact }: StepsResponse): string {
  const each =
    stepsPerColumn > 1
      ? `Each column is the slowest of ${formatInteger(stepsPerColumn)} steps`
      : "Every step is drawn";
  return exact
    ? each
    : `${each}; its parts are estimated from what was kept: zoom in for the steps themselves`;
}

function noPartsWords({ absent }: StepsResponse): string {
  const [first] = absent;
  if (first === undefined) return "";
  if (absent.some(({ reason }) => reason !== first.reason)) {
    return "The parts of steps were not recorded: what records each of them stands at the end of the page";
  }
  return `The parts of steps were not recorded. ${asSentence(first.reason)} ${asSentence(first.remedy)}`;
}
