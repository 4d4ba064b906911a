import type { ComponentChildren } from "preact";
import type {
  Attempt,
  MissingSources,
  OverviewResponse,
  RecordedSource,
} from "../../api/types.gen";
import { counted, formatInteger } from "../../base/bytes";
import { formatInstant, formatSeconds } from "../../base/durations";
import { asSentence, sourceLabel } from "../../model/words/source_label";
import { Icon, Status, type StatusLook } from "../../widgets/icon/icon";
import { PlainTable, type PlainColumn } from "../../widgets/row_table/plain_table";
import { Tip } from "../../widgets/tip/tip";

export function RunInfo({ data }: { readonly data: OverviewResponse }) {
  const { recorded, missing, facts, planted, rank, strip } = data;
  const numRanks = rank === null ? strip.rank.length : 1;
  return (
    <details class="run-info">
      <summary>Run info</summary>
      {data.about !== "" && <p>{data.about}</p>}
      {planted.length > 0 && (
        <Panel title="Faults planted in this simulation">
          <ul>
            {planted.map((fault) => (
              <li key={fault}>{fault}</li>
            ))}
          </ul>
        </Panel>
      )}
      {data.run.madeOf === "recording" && (
        <>
          <Panel title="Recorded">
            {recorded.length === 0 && (
              <p class="quiet">No rank has reported its sources yet.</p>
            )}
            <ul class="recorded">
              {recorded.map((source) => (
                <Recorded key={source.source} source={source} numRanks={numRanks} />
              ))}
            </ul>
          </Panel>
          {missing.length > 0 && (
            <Panel title="Not recorded">
              <PlainTable
                label="Not recorded"
                columns={missingColumns(numRanks)}
                rows={missing}
              />
            </Panel>
          )}
          <div class="columns">
            <Panel title="Attempts">
              <PlainTable label="Attempts" columns={ATTEMPTS} rows={data.attempts} />
            </Panel>
            {facts.length > 0 && (
              <Panel title={rank === null ? "Run" : `Rank ${rank}`}>
                <PlainTable
                  label="Facts of the run"
                  columns={[
                    { title: "", cell: ({ label }) => label },
                    { title: "", cell: ({ value }) => value },
                  ]}
                  rows={facts}
                />
              </Panel>
            )}
          </div>
        </>
      )}
    </details>
  );
}

export function Panel(props: {
  readonly title: string;
  readonly children: ComponentChildren;
}) {
  return (
    <section class="panel" aria-label={props.title}>
      <header class="panel-head">
        <h2>{props.title}</h2>
      </header>
      {props.children}
    </section>
  );
}

function Recorded(props: {
  readonly source: RecordedSource;
  readonly numRanks: number;
}) {
  const { source, numRanks } = props;
  const elsewhere = asSentence(source.elsewhere);
  const word = sourceLabel(source.source);
  return (
    <li>
      <Status look={{ word, icon: "check", tone: "ok" }} />
      <span class="quiet small">
        {ranksOf(source.numRanks, numRanks)}
        {elsewhere !== "" && (
          <Tip text={elsewhere} focusable class="caveat">
            <Icon name="info" sizePx={14} />
            <span class="off-screen">{elsewhere}</span>
          </Tip>
        )}
        {numRanks > 1 && source.cost !== "" && " · "}
        {source.cost}
      </span>
    </li>
  );
}

/** "all ranks" needs no number; a single rank has no text. */
function ranksOf(count: number, total: number): string {
  if (total === 1) return "";
  if (count >= total) return "all ranks";
  return `${formatInteger(count)} of ${counted(total, "rank")}`;
}

const MISSING: Readonly<Record<MissingSources["status"], StatusLook>> = {
  absent: { word: "Not available", icon: "minus", tone: "quiet" },
  off: { word: "Switched off", icon: "minus", tone: "quiet" },
  elsewhere: { word: "On another rank", icon: "check", tone: "quiet" },
  failed: { word: "Failed", icon: "cross", tone: "bad" },
};

function missingColumns(numRanks: number): readonly PlainColumn<MissingSources>[] {
  return [
    { title: "Sources", cell: ({ sources }) => sources.map(sourceLabel).join(", ") },
    { title: "Status", cell: ({ status }) => <Status look={MISSING[status]} /> },
    {
      title: numRanks > 1 ? "On" : "",
      look: "nowrap",
      cell: (row) => ranksOf(row.numRanks, numRanks),
    },
    { title: "Why", cell: ({ reason }) => asSentence(reason) },
    { title: "What to do", look: "quiet", cell: ({ remedy }) => asSentence(remedy) },
  ];
}

const ENDINGS: Readonly<Record<Attempt["ended"], StatusLook>> = {
  closed: { word: "Closed", icon: "check", tone: "ok" },
  running: { word: "Running", icon: "check", tone: "ok" },
  exception: { word: "Exception", icon: "cross", tone: "bad" },
  signal: { word: "By a signal", icon: "warning", tone: "warn" },
  lost: { word: "Lost", icon: "warning", tone: "bad" },
};

const OVERLAP: StatusLook = {
  word: "overlaps the attempt before: two jobs wrote into this run",
  icon: "warning",
  tone: "warn",
};

const ATTEMPTS: readonly PlainColumn<Attempt>[] = [
  { title: "#", cell: ({ index }) => index },
  {
    title: "Started",
    look: "nowrap",
    cell: ({ startedMs }) => formatInstant(startedMs),
  },
  {
    title: "Lasted",
    look: "nowrap",
    cell: ({ startedMs, endedMs }) =>
      endedMs === null ? "–" : formatSeconds((endedMs - startedMs) / 1000),
  },
  {
    title: "Steps",
    look: "nowrap",
    cell: ({ firstStep, lastStep }) =>
      firstStep === null || lastStep === null
        ? "–"
        : `${formatInteger(firstStep)}–${formatInteger(lastStep)}`,
  },
  { title: "Ranks", look: "num", cell: ({ numRanks }) => formatInteger(numRanks) },
  {
    title: "Ended",
    cell: ({ ended, overlapsPrevious }) => (
      <>
        <Status look={ENDINGS[ended]} />
        {overlapsPrevious && <Status look={OVERLAP} />}
      </>
    ),
  },
];
