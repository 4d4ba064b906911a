/** The timeline with what belongs to it: tools above, the plot, details beside it. */

import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { TraceResponse } from "../../../api/types.gen";
import { useCommands } from "../../../base/use_commands";
import { originOf } from "../../../model/words/origin";
import { useExports } from "../../../widgets/export/export_menu";
import { tableOf } from "../../../widgets/row_table/columns";
import { Waiting } from "../../../widgets/state/state";
import type { ViewProps } from "../../shared/view_props";
import { Details, rangeColumns } from "./details";
import { Toolbar } from "./head";
import { RULER_PX } from "./paint/lines";
import { Plot } from "./plot/plot";
import { useTimeline } from "./state/timeline";
import { Families, MapStrip } from "./strip";
import { summarySentence } from "./words";

const LEAST_PX = 300;

export function TimelinePart(props: {
  readonly view: ViewProps;
  readonly answer: TraceResponse;
}) {
  const { view, answer } = props;
  const trace = useTimeline(view, answer);
  const { layout, pinned, tiles, pinnedTiles, state, setState, sums } = trace;
  const exported = sums && {
    origin: originOf(view.run),
    name: "trace sums by name",
    table: () => tableOf(rangeColumns(sums, view.theme), [...sums.names.keys()]),
    about: () => ({ slices: sums.numSlices }),
  };
  useExports(view, "sums by name", exported);
  useCommands(view.commands, () => trace.commands);
  const above = useRef<HTMLDivElement>(null);
  const tallPx = Math.max(LEAST_PX, usePlotHeight(above));
  const pinnedPx = Math.min(pinned.totalPx, Math.round(tallPx * 0.45));
  const hasPinned = pinned.rows.length > 0;
  const label = `Timeline of ${view.run.name}`;
  const corner = (
    <>
      <input
        type="search"
        value={state.only}
        placeholder="Filter tracks"
        aria-label="Filter tracks by name"
        title="Show only tracks with these words in their names: stream, rank 1, memory"
        onInput={(event) => setState({ only: event.currentTarget.value })}
      />
      <span class="quiet">{answer.steps.number.length > 0 && "steps"}</span>
    </>
  );
  return (
    <section class="trace" aria-label="Timeline">
      <div class="trace" ref={above}>
        <Toolbar trace={trace} />
        <Waiting
          error={tiles.error}
          hasContent={tiles.version.value > 0}
          note="MemBoard retries automatically."
        />
        <MapStrip trace={trace} label={label} />
      </div>
      <div class={state.slice || state.range ? "trace-stage has-dock" : "trace-stage"}>
        <div class="trace-plots">
          {hasPinned && (
            <Plot
              trace={trace}
              layout={pinned}
              tiles={pinnedTiles}
              heightPx={pinnedPx}
              label={`${label}: pinned tracks`}
              corner={corner}
            />
          )}
          <Plot
            trace={trace}
            layout={layout}
            tiles={tiles}
            heightPx={tallPx - pinnedPx}
            label={label}
            corner={hasPinned ? null : corner}
          />
          {layout.rows.length === 0 && (
            <p class="quiet">No track is called “{state.only}”.</p>
          )}
        </div>
        <Details trace={trace} heightPx={tallPx + RULER_PX} />
      </div>
      <footer class="trace-foot">
        <span class="trace-summary quiet">{summarySentence(answer)}</span>
        <Families trace={trace} />
      </footer>
    </section>
  );
}

/** The summary, and the page's own edge. */
const BELOW_PX = 60;

function usePlotHeight(above: { readonly current: HTMLElement | null }): number {
  const [px, setPx] = useState(480);
  useLayoutEffect(() => {
    const element = above.current;
    if (element === null) return undefined;
    const measure = (): void => {
      // A hidden TensorBoard tab has no size; keep the last one.
      if (window.innerHeight === 0) return;
      const page = document.getElementById("content")?.scrollTop ?? 0;
      const top = element.getBoundingClientRect().bottom + page;
      setPx(Math.round(window.innerHeight - top - RULER_PX - BELOW_PX));
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    window.addEventListener("resize", measure);
    return () => {
      observer.disconnect();
      window.removeEventListener("resize", measure);
    };
  }, [above]);
  return px;
}
