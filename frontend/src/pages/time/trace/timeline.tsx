import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { TraceResponse } from "../../../api/types.gen";
import { counted } from "../../../base/bytes";
import { Waiting } from "../../../widgets/state/state";
import type { ViewProps } from "../../shared/view_props";
import { Details } from "./panels/details";
import { Head, Sources, Tools, tracesOf } from "./panels/head";
import { RULER_PX } from "./paint/lines";
import { Plot } from "./plot/plot";
import { useTimeline } from "./state/timeline";
import { Families, MapStrip } from "./panels/strip";

const LEAST_PX = 300;

export function TimelinePart(props: {
  readonly view: ViewProps;
  readonly answer: TraceResponse;
}) {
  const { view, answer } = props;
  const { focus, shownRanks, numRanks } = answer;
  const trace = useTimeline(view, answer);
  const { layout, pinned, tiles, pinnedTiles, state, setState } = trace;
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
        <Head {...props}>
          <Tools trace={trace} />
        </Head>
        <Waiting
          error={tiles.error.value}
          hasContent={tiles.version.value > 0}
          note="MemBoard retries automatically."
        />
        <div class="trace-map">
          <p class="trace-opened quiet" title="Choose other ranks on the left">
            {focus?.words} <br />
            {shownRanks.length < numRanks &&
              `${shownRanks.length} of ${counted(numRanks, "rank")}`}
          </p>
          <MapStrip trace={trace} label={label} />
        </div>
      </div>
      <div class={state.slice || state.range ? "trace-stage has-dock" : "trace-stage"}>
        <div class="trace-plots">
          {hasPinned && (
            <Plot
              trace={trace}
              corner={corner}
              layout={pinned}
              tiles={pinnedTiles}
              heightPx={pinnedPx}
              label={`${label}: pinned tracks`}
            />
          )}
          <Plot
            trace={trace}
            layout={layout}
            tiles={tiles}
            label={label}
            heightPx={tallPx - pinnedPx}
            corner={hasPinned ? null : corner}
          />
          {layout.rows.length === 0 && (
            <p class="quiet">No track is called “{state.only}”.</p>
          )}
        </div>
        <Details trace={trace} heightPx={tallPx + RULER_PX} />
      </div>
      <footer>
        <Families trace={trace} />
        <p class="trace-summary quiet">
          {answer.summary}{" "}
          <Sources
            of={tracesOf(answer).filter(
              ({ state: loadState }) => loadState === "ready",
            )}
          />
        </p>
      </footer>
    </section>
  );
}

const BELOW_PX = 64;

function usePlotHeight(above: { readonly current: HTMLElement | null }): number {
  const [px, setPx] = useState(480);
  useLayoutEffect(() => {
    const element = above.current;
    if (element === null) return undefined;
    const measure = (): void => {
      // A hidden TensorBoard tab has no size: the last one stays.
      if (window.innerHeight === 0) return;
      const page = document.getElementById("content")?.scrollTop ?? 0;
      const top = element.getBoundingClientRect().bottom + page;
      setPx(Math.round(window.innerHeight - top - RULER_PX - BELOW_PX));
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    observer.observe(document.documentElement);
    return () => observer.disconnect();
  }, [above]);
  return px;
}
