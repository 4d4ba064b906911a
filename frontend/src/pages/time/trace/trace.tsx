import { useLive } from "../../../api/live/use_live";
import { Nothing, Waiting } from "../../../widgets/state/state";
import { usePageState } from "../../shared/page_state";
import type { ViewProps } from "../../shared/view_props";
import { Head, Tabs, tracesOf } from "./panels/head";
import { ASKED } from "./state/params";
import { Summary } from "./panels/summary";
import { TimelinePart } from "./timeline";
import "../../../widgets/plot/plot.css";
import "../time.css";
import "./trace.css";

const RETRIES = "MemBoard retries automatically.";

export function TraceView(view: ViewProps) {
  if (ASKED.tab.read(view.params) === "timeline") return <TimelineTab view={view} />;
  return (
    <div class="trace">
      <Tabs view={view} />
      <Summary {...view} />
    </div>
  );
}

function TimelineTab({ view }: { readonly view: ViewProps }) {
  const [{ cycle, step, source }] = usePageState(view, ASKED);
  const { rank, filter } = view.ranks;
  const ranks = rank === null ? filter : null;
  const pinned = view.ranks.pinned.join(",");
  const query = { run: view.run.id, rank, ranks, pinned, cycle, step, source };
  const { data, error } = useLive(view.client, "trace", query, view.pollMs);
  if (data === null) {
    return (
      <div class="trace" aria-busy>
        <Tabs view={view} />
        <Waiting error={error} hasContent={false} note={RETRIES} blocksPx={[520]} />
      </div>
    );
  }
  const isOpening =
    data.stillReading || data.sources.some(({ state }) => state === "opening");
  const ready = tracesOf(data).some(({ state }) => state === "ready");
  const nothing = data.choices.length === 0 && !data.stillReading;
  const hasTracks = data.tracks.length > 0;
  const isDrawn = (ready || nothing) && hasTracks && data.endNs > 0;
  return (
    <div class="trace" aria-busy={isOpening}>
      <Waiting error={error} hasContent note={RETRIES} />
      {nothing && (
        <p class="quiet">
          No spans and no profiler traces in this run yet: pass torch_profiler=True to
          mb.record, open rec.span("augment"), or put *.pt.trace.json files into its
          folder.
        </p>
      )}
      {isDrawn ? (
        <TimelinePart view={view} answer={data} />
      ) : (
        <Head view={view} answer={data} />
      )}
      {ready && !hasTracks && (
        <Nothing title="The trace holds no slices">
          <p>
            Its file contains nothing with a duration: was the profiler on while
            something ran?
          </p>
        </Nothing>
      )}
    </div>
  );
}
