import type { ComponentChildren } from "preact";
import type {
  MissingSources,
  OverviewResponse,
  RecordedSource,
} from "../../api/types.gen";
import { counted, formatInteger } from "../../base/bytes";
import { asSentence, sourceLabel } from "../../model/words/source_label";
import { Facts, type FactRows } from "../../widgets/facts/facts";
import { Icon, Status, type StatusLook } from "../../widgets/icon/icon";
import { Tip } from "../../widgets/tip/tip";
import { AnswerTable } from "../shared/table/answer_table";
import type { ViewProps } from "../shared/view_props";

export function RunInfo(props: {
  readonly data: OverviewResponse;
  readonly view: ViewProps;
}) {
  const { data, view } = props;
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
              <Facts
                label="Not recorded"
                rows={missing.map((group) => missingFact(group, numRanks))}
              />
            </Panel>
          )}
          <div class="columns">
            <AnswerTable view={view} table={data.attemptTable} culprits={BAD_ENDS} />
            {facts.length > 0 && (
              <Panel title={rank === null ? "Run" : `Rank ${rank}`}>
                <Facts
                  label="Facts of the run"
                  rows={facts.map(({ label, value }) => [label, value])}
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

function missingFact(group: MissingSources, numRanks: number): FactRows[number] {
  const { sources, status, reason, remedy } = group;
  const where = numRanks > 1 ? ranksOf(group.numRanks, numRanks) : "";
  return [
    sources.map(sourceLabel).join(", "),
    <>
      <Status look={MISSING[status]} />{" "}
      {where !== "" && <span class="quiet">on {where}</span>} {asSentence(reason)}
    </>,
    asSentence(remedy),
  ];
}

const BAD_ENDS: ReadonlySet<string> = new Set(["exception", "lost"]);
