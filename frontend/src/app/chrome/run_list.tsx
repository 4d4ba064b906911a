import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { RunStanding, RunsResponse, RunSummary } from "../../api/types.gen";
import { counted, formatBytes, formatInteger, type ByteUnit } from "../../base/bytes";
import { formatAgo, formatInstant } from "../../base/durations";
import { searchOf, sortedRows } from "../../model/shown_rows";
import { kindOf, standingLook, STATUS_LOOKS } from "../../pages/shared/run_standing";
import { cut, withTail } from "../../widgets/cut_text/cut_text";
import { Icon, Status } from "../../widgets/icon/icon";
import type { Shell } from "../shell/shell";
import { usePreference } from "../shell/theme";
import "./run_list.css";

/** Of more runs each has one line, and a search stands above them. */
const MOST_SPACIOUS = 6;

const ORDER_WORDS = {
  worst: ["by day", "The newest day first, of a day the worst run"],
  newest: ["by time", "By the time of the newest row"],
  peak: ["by peak", "The highest peak first"],
  name: ["by name", "In the order of the alphabet"],
} as const;
type Order = keyof typeof ORDER_WORDS;
const ORDERS = Object.keys(ORDER_WORDS) as Order[];

interface ListedRun {
  readonly summary: RunSummary;
  readonly standing: RunStanding;
}

/** Every word of `text` is in the name, the verdict or the kind of a run. */
export function listedRuns(
  { runs, standings }: Pick<RunsResponse, "runs" | "standings">,
  order: Order,
  text: string,
): readonly ListedRun[] {
  const byId = new Map(runs.map((summary) => [summary.id, summary]));
  const matches = searchOf(text);
  const listed = standings.flatMap((standing): readonly ListedRun[] => {
    const summary = byId.get(standing.run);
    if (summary === undefined) return [];
    const texts = [summary.name, standingLook(standing)?.word, ...kindOf(summary)];
    if (summary.live) texts.push(STATUS_LOOKS.live.word);
    return matches?.(texts.join(" ")) === false ? [] : [{ summary, standing }];
  });
  const values = {
    worst: undefined,
    newest: listed.map(({ summary }) => summary.lastMs),
    peak: listed.map(({ standing }) => standing.peakBytes ?? NaN),
    name: listed.map(({ summary }) => summary.name),
  }[order];
  return sortedRows(listed.length, values, order !== "name").flatMap(
    (row) => listed[row] ?? [],
  );
}

/** All runs of the logdir; what it shows follows each poll. */
export function RunList({ address, openRun }: Pick<Shell, "address" | "openRun">) {
  const { place, chooseRun } = address;
  const { run, strip } = openRun;
  const { data } = openRun.runs;
  const [text, setText] = useState("");
  const [preferred, setOrder] = usePreference("runs", () => "worst");
  const num = data?.runs.length ?? 0;
  const isShort = num <= MOST_SPACIOUS;
  // Few have no switch that shows or changes their order.
  const usual = isShort ? "worst" : preferred;
  const order = ORDERS.find((option) => option === usual) ?? "worst";
  const listed = useMemo(
    () => (data === null ? [] : listedRuns(data, order, text)),
    [data, order, text],
  );
  const chosen = useRef<HTMLButtonElement>(null);
  // The ranks below leave less room for the list.
  const hasRanks = strip !== null;
  useEffect(
    () => chosen.current?.scrollIntoView({ block: "nearest" }),
    [run?.id, hasRanks, order],
  );
  return (
    <section>
      <h2>
        <span>{num > 1 ? "Runs" : "Run"}</span>
        {num > 1 && (
          <span class="quiet" role="status">
            {listed.length < num && `${formatInteger(listed.length)} of `}
            {formatInteger(num)}
          </span>
        )}
      </h2>
      {num === 0 && <p class="rail-note small quiet">none yet</p>}
      {!isShort && (
        <div class="run-tools">
          <input
            type="search"
            aria-label="Find runs"
            title="Find runs by name, verdict or kind"
            placeholder="Find"
            spellcheck={false}
            value={text}
            onInput={(event) => setText(event.currentTarget.value)}
          />
          <select
            aria-label="Order of the runs"
            title={ORDER_WORDS[order][1]}
            value={order}
            onChange={(event) => setOrder(event.currentTarget.value)}
          >
            {ORDERS.map((option) => (
              <option key={option} value={option}>
                {ORDER_WORDS[option][0]}
              </option>
            ))}
          </select>
        </div>
      )}
      <ul class={isShort ? "runs" : "runs is-dense"} aria-label="Runs">
        {listed.map(({ summary, standing }) => {
          const isChosen = summary.id === run?.id;
          return (
            <li key={summary.id}>
              <button
                ref={isChosen ? chosen : null}
                type="button"
                class="run"
                aria-current={isChosen ? "true" : undefined}
                title={titleOf(summary, standing)}
                onClick={() => chooseRun(summary.id)}
              >
                <RunRow
                  summary={summary}
                  standing={standing}
                  unit={place.unit}
                  isDense={!isShort}
                />
                {isChosen && <RunFacts of={summary} />}
              </button>
            </li>
          );
        })}
      </ul>
      {listed.length === 0 && num > 0 && (
        <p class="rail-note small quiet">No run holds “{text}”.</p>
      )}
    </section>
  );
}

function titleOf(summary: RunSummary, standing: RunStanding): string {
  const verdict = standingLook(standing)?.word;
  return [
    summary.name,
    ...(verdict === undefined ? [] : [verdict]),
    ...kindOf(summary),
    ...runFacts(summary),
    `Newest row: ${formatInstant(summary.lastMs)}`,
  ].join("\n");
}

function RunRow(props: {
  readonly summary: RunSummary;
  readonly standing: RunStanding;
  readonly unit: ByteUnit;
  /** The verdict is an icon, whose word is read out and shown on hover. */
  readonly isDense: boolean;
}) {
  const { summary, standing, unit, isDense } = props;
  const { peakBytes, status } = standing;
  const look = standingLook(standing);
  const isAlsoLive = summary.live && status !== "live";
  const peak = peakBytes !== null && (
    <span title="Peak">{formatBytes(peakBytes, unit)}</span>
  );
  if (!isDense) {
    return (
      <>
        <b class="run-name cut">{summary.name}</b>
        {peak}
        <span class="run-standing small">
          {look !== null && <Status look={look} />}
          {isAlsoLive && <Status look={STATUS_LOOKS.live} />}
          <span class="quiet">{kindOf(summary)}</span>
        </span>
      </>
    );
  }
  return (
    <>
      <span class={`run-icon status-${look?.tone ?? "quiet"}`}>
        {look !== null && <Icon name={look.icon} />}
      </span>
      <span class="run-name cut">{cut(withTail(summary.name))}</span>
      {peak}
      <span class="off-screen">
        {look?.word} {kindOf(summary)}
      </span>
      {isAlsoLive && <Status look={STATUS_LOOKS.live} />}
    </>
  );
}

function RunFacts({ of }: { readonly of: RunSummary }) {
  // A run whose files were all refused has no time.
  const hasAge = !of.live && of.lastMs > 0;
  const age = hasAge ? [formatAgo(of.lastMs, Date.now())] : [];
  return (
    <span class="run-facts small quiet">
      {[...runFacts(of), ...age].map((fact, i) => (
        <>
          {i > 0 && " · "}
          <span class="nowrap">{fact}</span>
        </>
      ))}
    </span>
  );
}

const DEVICE_WORDS: Readonly<Record<string, string>> = {
  cpu: "no accelerator",
  "": "device not recorded",
};

function runFacts(run: RunSummary): readonly string[] {
  const { numProblems } = run;
  const unread = numProblems > 0 ? [`${counted(numProblems, "problem")} in files`] : [];
  if (run.madeOf !== "recording") return unread;
  const parts = [
    DEVICE_WORDS[run.deviceType] ?? run.deviceType,
    run.lastStep === null ? "no step yet" : `step ${formatInteger(run.lastStep)}`,
  ];
  if (run.numRanks < run.worldSize) {
    parts.push(`${formatInteger(run.numRanks)} of ${counted(run.worldSize, "rank")}`);
  }
  if (run.numAttempts > 1) parts.push(counted(run.numAttempts, "attempt"));
  return [...parts, ...unread];
}
