/** Trace: what ran when, of all ranks on one clock, with memory and host beside it. */

import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import type { Query } from "../../../api/client";
import type { TraceResponse } from "../../../api/types.gen";
import { useLive } from "../../../api/use_live";
import { Nothing, Waiting } from "../../../widgets/state/state";
import { Segmented } from "../../shared/controls/choices";
import type { ViewProps } from "../../shared/view_props";
import { readTrace, type TraceParams } from "./state/params";
import { Sources } from "./head";
import { Summary } from "./summary/summary";
import { Timeline } from "./timeline";
import { copyText } from "../../../base/clipboard";
import "../../memory/history/history.css";
import "../../../widgets/line_chart/line_chart.css";
import "./trace.css";

const OPENING_POLL_MS = 400;

const TABS = ["timeline", "summary"] as const;
type Tab = (typeof TABS)[number];

const TAB_WORDS: Readonly<Record<Tab, readonly [string, string]>> = {
  timeline: ["Timeline", "What ran when, on all ranks"],
  summary: ["Summary", "Operators and memory by category of each recorded trace"],
};

export function TraceView(view: ViewProps) {
  const tab: Tab = view.params.get("tab") === "summary" ? "summary" : "timeline";
  const tabs = (
    <Segmented
      label="What is shown of traces"
      options={TABS}
      chosen={tab}
      words={(one) => TAB_WORDS[one]}
      onChoose={(one) =>
        view.setParams({ tab: one === "timeline" ? null : one }, "push")
      }
    />
  );
  if (tab === "timeline") return <TimelineTab view={view} tabs={tabs} />;
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
  const params = useMemo(() => readTrace(view.params), [view.params]);
  const { rank, filter } = view.ranks;
  const query: Query = {
    run: view.run.id,
    rank,
    ranks: rank === null ? filter : null,
    cycle: params.cycle,
    step: params.step,
    source: view.params.get("source") ?? null,
  };
  const [opening, setOpening] = useState(true);
  const pollMs = opening ? OPENING_POLL_MS : view.pollMs;
  const { data, error } = useLive(view.client, "trace", query, pollMs);
  useEffect(
    () =>
      setOpening(
        data === null ||
          data.stillReading ||
          data.sources.some(({ state }) => state === "opening"),
      ),
    [data],
  );
  return (
    <div class="trace" aria-busy={opening}>
      {data === null && tabs}
      <Waiting
        error={error}
        hasContent={data !== null}
        note="It is asked again by itself."
        blocksPx={[520]}
      />
      {data !== null && <OfRun view={view} tabs={tabs} params={params} answer={data} />}
    </div>
  );
}

function OfRun(props: {
  readonly view: ViewProps;
  readonly tabs: ComponentChildren;
  readonly params: TraceParams;
  readonly answer: TraceResponse;
}) {
  const { view, params, answer } = props;
  const ready = answer.sources.some(
    ({ kind, state }) => kind !== "counters" && state === "ready",
  );
  const nothing = answer.choices.length === 0 && !answer.stillReading;
  return (
    <>
      {nothing && <NoTrace hasNumbers={answer.tracks.length > 0} />}
      <Sources answer={answer} view={view} tabs={props.tabs} cycle={params.cycle} />
      {ready && answer.tracks.length === 0 && (
        <Nothing title="The trace holds no slices">
          <p>
            Its file was read and nothing in it took a time: was the profiler on while
            something ran?
          </p>
        </Nothing>
      )}
      {(ready || nothing) && answer.tracks.length > 0 && answer.endNs > 0 && (
        <Timeline view={view} params={params} answer={answer} />
      )}
    </>
  );
}

/** What stands where no trace is: what was looked for, and how to record one. */
const SNIPPET = `import collector

with collector.record(
    "runs/my_run", model=model, optimizer=optimizer,
    schedule={"wait": 10, "warmup": 2, "active": 3, "repeat": 2},
    torch_profiler=True,
) as rec:
    for batch in loader:
        with rec.span("augment"):
            ...
        rec.step()`;

function NoTrace({ hasNumbers }: { readonly hasNumbers: boolean }) {
  const [copied, setCopied] = useState(false);
  return (
    <Nothing title="No spans and no profiler traces in this run">
      <p>
        {hasNumbers
          ? "Its memory and host numbers are drawn below. "
          : "Looked for recorded spans and for trace files of any profiler. "}
        Record spans and torch’s profiler with one setting; or put{" "}
        <code>*.pt.trace.json(.gz)</code> files into the run’s folder.
      </p>
      <div class="snippet">
        <pre tabIndex={0}>{SNIPPET}</pre>
        <button
          type="button"
          class="button"
          onClick={() => {
            void copyText(SNIPPET).then(setCopied);
          }}
        >
          {copied ? "Copied" : "Copy"}
        </button>
      </div>
      <p class="quiet">It fills by itself when the first arrives.</p>
    </Nothing>
  );
}
