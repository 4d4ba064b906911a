import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { useLive } from "../../../api/use_live";
import { Nothing, Waiting } from "../../../widgets/state/state";
import { Segmented } from "../../shared/controls/choices";
import { usePageState } from "../../shared/page_state";
import type { ViewProps } from "../../shared/view_props";
import { Head, tracesOf } from "./head";
import { ASKED } from "./state/params";
import { Summary } from "./summary/summary";
import { TimelinePart } from "./timeline";
import "../../../widgets/plot/plot.css";
import "./trace.css";

const OPENING_POLL_MS = 400;
const RETRIES = "MemBoard retries automatically.";

const TABS = ["timeline", "summary"] as const;

const TAB_WORDS = {
  timeline: ["Timeline", "What ran when, on all ranks"],
  summary: ["Summary", "Operators and memory by category of each recorded trace"],
} as const;

export function TraceView(view: ViewProps) {
  const [{ tab }, setState] = usePageState(view, ASKED);
  const isSummary = tab === "summary";
  const tabs = (
    <Segmented
      label="Trace view"
      options={TABS}
      chosen={isSummary ? "summary" : "timeline"}
      words={(one) => TAB_WORDS[one]}
      onChoose={(one) => setState({ tab: one === "timeline" ? "" : one }, "push")}
    />
  );
  if (!isSummary) return <TimelineTab view={view} tabs={tabs} />;
  return (
    <div class="trace">
      {tabs}
      <Summary {...view} />
    </div>
  );
}

function TimelineTab(props: {
  readonly view: ViewProps;
  readonly tabs: ComponentChildren;
}) {
  const { view, tabs } = props;
  const [{ cycle, step, source }] = usePageState(view, ASKED);
  const { rank, filter } = view.ranks;
  const ranks = rank === null ? filter : null;
  const pinned = view.ranks.pinned.join(",");
  const query = { run: view.run.id, rank, ranks, pinned, cycle, step, source };
  const [opening, setOpening] = useState(true);
  const pollMs = opening ? OPENING_POLL_MS : view.pollMs;
  const { data, error } = useLive(view.client, "trace", query, pollMs);
  useEffect(() => {
    const isOpening = data?.sources.some(({ state }) => state === "opening") ?? true;
    setOpening(isOpening || data?.stillReading === true);
  }, [data]);
  if (data === null) {
    return (
      <div class="trace" aria-busy>
        {tabs}
        <Waiting error={error} hasContent={false} note={RETRIES} blocksPx={[520]} />
      </div>
    );
  }
  const ready = tracesOf(data).some(({ state }) => state === "ready");
  const nothing = data.choices.length === 0 && !data.stillReading;
  const hasTracks = data.tracks.length > 0;
  const head = (tools: ComponentChildren) => (
    <Head answer={data} view={view} tabs={tabs} cycle={cycle}>
      {tools}
    </Head>
  );
  const isDrawn = (ready || nothing) && hasTracks && data.endNs > 0;
  return (
    <div class="trace" aria-busy={opening}>
      <Waiting error={error} hasContent note={RETRIES} />
      {nothing && (
        <p class="quiet">
          No spans and no profiler traces in this run yet: pass torch_profiler=True to
          collector.record, open rec.span("augment"), or put *.pt.trace.json files into
          its folder.
        </p>
      )}
      {isDrawn ? <TimelinePart view={view} answer={data} head={head} /> : head(null)}
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
