/** The stacked categories through the window shown; choosing a time chooses a boundary. */

import { useMemo, useRef } from "preact/hooks";
import type { ModulesResponse, ModuleTimelineResponse } from "../../../api/types.gen";
import { worthSaying } from "../../../api/client";
import { useLive } from "../../../api/use_live";
import { useCommands } from "../../../base/use_commands";
import { originOf } from "../../../model/words/origin";
import { CategoryStack } from "../../../widgets/category_stack/category_stack";
import type { StackHandle } from "../../../widgets/category_stack/types";
import type { Boundary } from "../../../widgets/category_stack/spans";
import type { ExportSource } from "../../../widgets/export/source";
import { Failure, Skeleton } from "../../../widgets/state/state";
import { useWidth } from "../../../widgets/line_chart/use_size";
import { Segmented } from "../../shared/controls/choices";
import { peakCommands } from "../../shared/range/peaks";
import { rangeCommands } from "../../shared/range/commands";
import { useRange } from "../../shared/range/use_range";
import type { ViewProps } from "../../shared/view_props";
import { askedRange } from "../../shared/range/params";
import { subjectOf, WINDOW_RANGE, type ModulesParams } from "./params";
import { boundaryWords } from "./words";

const PLOT_PX = 168;

const AXES = {
  time: ["Time", "As the clock ran"],
  event: ["Events", "One after another: long kernels take no room"],
} as const;

export interface WindowTimelineProps {
  readonly view: ViewProps;
  readonly data: ModulesResponse;
  readonly params: ModulesParams;
  /** Fqn of the module that is selected. */
  readonly selected: string | null;
  /** The moment that the table shows, in microseconds; NaN where unknown. */
  readonly momentUs: number;
  readonly exporter: { current: ExportSource | null };
}

export function WindowTimeline(props: WindowTimelineProps) {
  const { view, data, params } = props;
  const box = useRef<HTMLElement>(null);
  const px = useWidth(box);
  const { shown, settled, setRange } = useRange(
    view.params,
    view.setParams,
    WINDOW_RANGE,
  );
  const asked = askedRange(settled);
  const subject = subjectOf(data);
  const query =
    px === 0
      ? null
      : {
          ...subject,
          axis: params.axis,
          x0: asked?.low ?? null,
          x1: asked?.high ?? null,
          px: asked === null ? px : 2 * px,
        };
  const live = useLive(view.client, "module_timeline", query, view.pollMs);
  const answer = fitting(live.data, data, params);
  const handle = useRef<StackHandle | null>(null);
  useCommands(view.commands, () => [
    ...rangeCommands("Modules", {
      extent: { low: answer?.xLow ?? 0, high: answer?.xHigh ?? 1 },
      range: shown,
      setRange,
    }),
    ...peakCommands("Modules", {
      toHighest: () => handle.current?.toPeak(),
      toNext: (side) => handle.current?.toNextPeak(side),
    }),
  ]);
  const about = useMemo(
    () => ({ window: data.window, rank: data.rank, device: data.device }),
    [data.window, data.rank, data.device],
  );
  if (live.error !== null && worthSaying(live.error, answer !== null)) {
    return <Failure failure={live.error} />;
  }
  if (answer === null) {
    return (
      <section ref={box}>
        <Skeleton heightPx={PLOT_PX + 80} />
      </section>
    );
  }
  if (answer.totalBytes.length === 0) return null;
  const pick = ({ module, state, call }: Boundary): void =>
    view.setParams(
      {
        state,
        call: call === null ? null : call.toString(),
        ...(module === null ? {} : { module }),
      },
      "push",
    );
  return (
    <section ref={box} class="modules-timeline" aria-label="Memory through the step">
      <div class="modules-axis">
        <Segmented
          label="Axis"
          options={["time", "event"] as const}
          chosen={params.axis}
          words={(axis) => AXES[axis]}
          onChoose={(axis) => {
            // A range of one axis says nothing about the other.
            view.setParams({
              axis: axis === "time" ? null : axis,
              t0: null,
              t1: null,
            });
          }}
        />
      </div>
      <CategoryStack
        label={`Memory through the step, rank ${data.rank ?? 0}`}
        answer={answer}
        range={shown}
        onRange={setRange}
        selected={props.selected}
        moment={
          params.axis === "time" && Number.isFinite(props.momentUs)
            ? props.momentUs
            : null
        }
        onPick={pick}
        boundaryWords={boundaryWords}
        theme={view.theme}
        byteUnit={view.byteUnit}
        plotPx={PLOT_PX}
        origin={originOf(data.run)}
        handle={handle}
        exporter={props.exporter}
        about={about}
      />
    </section>
  );
}

/** An answer about another window or axis would be drawn under the wrong words. */
function fitting(
  answer: ModuleTimelineResponse | null,
  data: ModulesResponse,
  params: ModulesParams,
): ModuleTimelineResponse | null {
  if (answer === null) return null;
  const same =
    answer.window === data.window &&
    answer.rank === data.rank &&
    answer.axis === params.axis;
  return same ? answer : null;
}
