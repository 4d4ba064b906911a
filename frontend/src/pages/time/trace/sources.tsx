/** What the timeline is made of: files and recordings, how far they are, what is wrong. */

import type { TraceChoice, TraceResponse, TraceSource } from "../../../api/types.gen";
import { formatBytes, formatInteger } from "../../../base/bytes";
import { formatSeconds } from "../../../base/durations";
import { unrealOf } from "../../../model/words/origin";
import { Icon } from "../../../widgets/icon/icon";
import { Menu } from "../../../widgets/menu/menu";
import { ProblemList } from "../../../widgets/problem_list/problem_list";
import { Choice } from "../../shared/controls/choices";
import type { ViewProps } from "../../shared/view_props";
import { fileUrl, mergedUrl, openPerfetto, sourceTitle } from "./actions";

const MOST_NAMED = 4;

export function Sources(props: {
  readonly answer: TraceResponse;
  readonly view: ViewProps;
  readonly cycle: number | null;
}) {
  const { answer, view, cycle } = props;
  const { run } = view;
  const traces = answer.sources.filter(({ kind }) => kind !== "counters");
  const files = traces.filter(({ hasFile }) => hasFile);
  const cycles = cyclesOf(answer.choices);
  const failed = traces.flatMap(({ problem }) => (problem === null ? [] : [problem]));
  const problems = [...failed, ...answer.problems];
  return (
    <header class="trace-sources">
      <div class="trace-sources-row">
        <h2>Trace</h2>
        {traces.slice(0, MOST_NAMED).map((source) => (
          <OneSource key={source.id} source={source} />
        ))}
        {traces.length > MOST_NAMED && (
          <span class="quiet">and {traces.length - MOST_NAMED} more</span>
        )}
        {answer.shownRanks.length < answer.numRanks && (
          <span class="quiet">
            {answer.shownRanks.length} of {formatInteger(answer.numRanks)} ranks shown:
            choose others at the left
          </span>
        )}
        {cycles.length > 1 && (
          <Choice
            label="Cycle"
            value={cycle?.toString() ?? ""}
            onChange={(value) =>
              view.setParams(
                { cycle: value, w0: null, w1: null, slice: null, r0: null, r1: null },
                "push",
              )
            }
          >
            <option value="">newest</option>
            {cycles.map((one) => (
              <option key={one} value={one}>
                {one}
              </option>
            ))}
          </Choice>
        )}
        {unrealOf(run) !== null && <span class="quiet">{unrealOf(run)}</span>}
        {traces.length > 0 && (
          <span class="trace-files">
            <button
              type="button"
              class="button"
              title="In a tab of its own; the bytes go from this browser to that tab"
              onClick={() => openPerfetto(answer, run, view.say)}
            >
              Open in Perfetto
            </button>
            <Menu
              label="Download traces"
              empty="Nothing to download."
              items={[
                ...files.map((source) => ({
                  id: source.id,
                  label: `${sourceTitle(source)} (${formatBytes(source.numBytes)})`,
                  run: () => window.location.assign(fileUrl(run.id, source.id)),
                })),
                {
                  id: "merged",
                  label: "All ranks merged, on one clock",
                  run: () => window.location.assign(mergedUrl(run.id)),
                },
              ]}
            >
              <Icon name="download" />
            </Menu>
          </span>
        )}
      </div>
      {problems.length > 0 && <ProblemList problems={problems} />}
    </header>
  );
}

function cyclesOf(choices: readonly TraceChoice[]): readonly number[] {
  const found = new Set<number>();
  for (const { cycle } of choices) if (cycle !== null) found.add(cycle);
  return [...found].sort((a, b) => a - b);
}

function OneSource({ source }: { readonly source: TraceSource }) {
  const { state, progress, doing, clock, notes } = source;
  const facts = [
    `${formatInteger(source.numSlices)} slices`,
    ...(source.numBytes > 0 ? [formatBytes(source.numBytes)] : []),
    ...(clock === null ? [] : [clockWords(clock)]),
    ...notes,
  ];
  return (
    <span class="trace-source" title={facts.join("\n")}>
      {state === "failed" && <Icon name="warning" sizePx={14} />}
      {state === "ready" && notes.length > 0 && <Icon name="info" sizePx={14} />}
      <span class="trace-source-name">{sourceTitle(source)}</span>
      {state === "opening" && (
        <>
          <span class="quiet">{doing === "" ? "opening" : doing}</span>
          <progress max={1} value={progress} aria-label="Opening" />
        </>
      )}
      {state === "failed" && <span class="quiet">cannot be opened</span>}
    </span>
  );
}

function clockWords({
  method,
  offsetNs,
  errorNs,
}: NonNullable<TraceSource["clock"]>): string {
  if (method === "none")
    return "its times are no wall clock’s: put where the others begin";
  const moved =
    offsetNs === 0
      ? "clock as it is"
      : `clock moved by ${formatSeconds(offsetNs / 1e9)}`;
  return errorNs === null
    ? `${moved}, how far off is not known`
    : `${moved}, at most ${formatSeconds(errorNs / 1e9)} off (${method})`;
}
