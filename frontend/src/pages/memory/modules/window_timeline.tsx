import { useRef } from "preact/hooks";
import type { ModulesResponse } from "../../../api/types.gen";
import { worthSaying } from "../../../api/client";
import { useLive } from "../../../api/live/use_live";
import { originOf } from "../../../model/words/origin";
import { WindowStack } from "../../../widgets/stack/window_stack";
import type { Boundary } from "../../../widgets/stack/spans";
import { Failure, Skeleton } from "../../../widgets/state/state";
import { useWidth } from "../../../widgets/plot/canvas";
import { Switch } from "../../shared/controls/choices";
import { useRange } from "../../shared/range/use_range";
import { askedRange } from "../../shared/range/params";
import {
  MODULES,
  stateWords,
  subjectOf,
  WINDOW_RANGE,
  type ModulesPage,
} from "./params";

const PLOT_PX = 168;
const NO_RANGE = MODULES.range.write(null);

export function WindowTimeline(
  props: ModulesPage & {
    readonly data: ModulesResponse;
    /** Time of the table's moment, µs; NaN: unknown. */
    readonly momentUs: number;
  },
) {
  const { view, state, setState, data, momentUs } = props;
  const { axis } = state;
  const box = useRef<HTMLElement>(null);
  const px = useWidth(box);
  const range = useRange(view.params, view.setParams, WINDOW_RANGE);
  const asked = askedRange(range.settled);
  const ends = { x0: asked?.low ?? null, x1: asked?.high ?? null };
  const query = { ...subjectOf(data), axis, ...ends, px: asked === null ? px : 2 * px };
  const live = useLive(
    view.client,
    "module_timeline",
    px === 0 ? null : query,
    view.pollMs,
  );
  // An answer for another step or axis would get the wrong labels.
  const { data: timeline } = live;
  const isSame = timeline?.window === data.window && timeline.rank === data.rank;
  const answer = isSame && timeline.axis === axis ? timeline : null;
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
  return (
    <section ref={box} class="modules-timeline" aria-label="Memory through the step">
      <div class="modules-axis">
        {/* A range on one axis means nothing on the other. */}
        <Switch view={view} of={MODULES.axis} label="Axis" leaves={NO_RANGE} />
      </div>
      <WindowStack
        label={`Memory through the step, rank ${data.rank ?? 0}`}
        answer={answer}
        range={range.shown}
        onRange={range.setRange}
        selected={state.module}
        moment={axis === "time" && Number.isFinite(momentUs) ? momentUs : null}
        onPick={({ module, state: moment, call }) =>
          setState({ state: moment, call, ...(module !== null && { module }) }, "push")
        }
        boundaryWords={(boundary) => boundaryWords(data, boundary)}
        theme={view.theme}
        byteUnit={view.byteUnit}
        plotPx={PLOT_PX}
        origin={originOf(data.run)}
        page={{ view, group: "Modules" }}
        about={{ window: data.window, rank: data.rank, device: data.device }}
      />
    </section>
  );
}

/** URL words for a boundary chosen in the timeline. */
export function boundaryWords(
  data: ModulesResponse,
  { module, state, call }: Boundary,
): string {
  const stateText = stateWords(data, state);
  if (module === null) return stateText;
  return `${stateText} of ${module}${call !== null && call > 0 ? `, call ${call + 1}` : ""}`;
}
