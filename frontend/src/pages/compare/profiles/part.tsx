/** Profiles: the steps of one profiler's trace against those of another, role by role. */

import type { ComponentChildren } from "preact";
import type { ProfileResponse, RunSummary } from "../../../api/types.gen";
import type { Live } from "../../../api/watch";
import { formatSeconds } from "../../../base/durations";
import { divergingColours } from "../../../model/category";
import { formatSigned } from "../../../model/words/signed";
import type { ExportSource } from "../../../widgets/export/source";
import { ChartButton } from "../../../widgets/line_chart/chart_button";
import { Skeleton, Waiting } from "../../../widgets/state/state";
import { Choice } from "../../shared/controls/choices";
import { ROLE_HELP, ROLE_WORDS, roleColour } from "../../time/profiled/roles";
import {
  NoTraces,
  TraceChoice,
  TraceState,
  useProfiled,
} from "../../time/profiled/trace_choice";
import type { ViewProps } from "../../shared/view_props";
import { percentText } from "../headline";
import type { CompareParams } from "../params";
import { ProfileTables } from "./tables";
import { meanStepMs, otherTrace, rolePairs, type RolePair } from "./profiles";
import { useOtherRun } from "../use_other_run";

export interface ProfilesPartProps {
  readonly view: ViewProps;
  readonly params: CompareParams;
  readonly exporter: { current: ExportSource | null };
}

/** The answer, once its trace is open. */
function ready({ data }: Live<ProfileResponse>): ProfileResponse | null {
  const isOpen = data?.choice.state === "ready" && data.choice.problem === null;
  return isOpen ? data : null;
}

export function ProfilesPart({ view, params, exporter }: ProfilesPartProps) {
  const { client, run, ranks, setParams, pollMs } = view;
  const { runs, bRun } = useOtherRun(view, params.bRun);
  const [aWord, bWord] = [params.a.source, params.b.source];
  const rank = ranks.rank;
  const aQuery = { run: run.id, source: aWord === "" ? null : aWord, rank };
  const a = useProfiled(client, "profile", aQuery, pollMs);
  const aChoice = a.data?.choice ?? null;
  const aId = aChoice?.source ?? null;
  const untold = bWord === "" && bRun === run.id;
  const bId =
    untold && aChoice !== null && aId !== null
      ? otherTrace(aChoice.traces, aId)
      : bWord === ""
        ? null
        : bWord;
  const bQuery = untold && bId === null ? null : { run: bRun, source: bId, rank };
  const b = useProfiled(client, "profile", bQuery, pollMs);
  if (aChoice?.numTraces === 0) return <NoTraces what="profiles to compare" />;
  const [aReady, bReady] = [ready(a), ready(b)];
  return (
    <>
      <div class="compare-sides compare-traces">
        <Side
          name="A"
          live={a}
          onSource={(source) => {
            // B stays what it is, also where nobody had chosen it.
            setParams({ source, b_source: b.data?.choice.source ?? null }, "push");
          }}
        />
        <Side
          name="B"
          live={b}
          runs={runs}
          run={bRun}
          onRun={(id) =>
            setParams({ b_run: id === run.id ? null : id, b_source: null }, "push")
          }
          onSource={(source) => setParams({ b_source: source }, "push")}
        />
        <ChartButton
          label="Exchange A and B"
          icon="swap"
          onClick={() => {
            if (bRun !== run.id) {
              view.say(
                "A is of the run chosen on the left: choose the other run there",
              );
              return;
            }
            const source = b.data?.choice.source ?? null;
            setParams({ source, b_source: aId }, "push");
          }}
        />
      </div>
      <Way live={a} name="A" />
      <Way live={b} name="B" />
      {aReady !== null && bReady !== null && (
        <>
          <Roles a={aReady} b={bReady} view={view} />
          <ProfileTables
            key={params.table}
            view={view}
            params={params}
            exporter={exporter}
            a={aReady}
            b={bReady}
          />
        </>
      )}
    </>
  );
}

function Side(props: {
  readonly name: "A" | "B";
  readonly live: Live<ProfileResponse>;
  readonly runs?: readonly RunSummary[];
  readonly run?: string;
  readonly onRun?: (run: string) => void;
  readonly onSource: (source: string) => void;
}) {
  const { name, live, runs, run, onRun } = props;
  const choice = live.data?.choice ?? null;
  return (
    <div class="history-bar compare-side" role="group" aria-label={`Side ${name}`}>
      <b class={`compare-letter is-${name}`}>{name}</b>
      {runs !== undefined && onRun !== undefined && runs.length > 1 && (
        <Choice label="Run" value={run ?? ""} onChange={onRun}>
          {runs.map((one) => (
            <option key={one.id} value={one.id}>
              {one.name}
            </option>
          ))}
        </Choice>
      )}
      {choice?.numTraces === 0 && (
        <span class="quiet">This run has no profiler traces.</span>
      )}
      {choice !== null && choice.numTraces > 0 && (
        <TraceChoice choice={choice} onChoose={props.onSource} />
      )}
    </div>
  );
}

/** What stands in the way of a side: it is being opened, or cannot be. */
function Way(props: { readonly live: Live<ProfileResponse>; readonly name: string }) {
  const { data, error } = props.live;
  return (
    <>
      {data === null && error === null && <Skeleton heightPx={24} />}
      {data !== null && <TraceState choice={data.choice} />}
      <Waiting error={error} hasContent={data !== null} note={`Side ${props.name}.`} />
    </>
  );
}

function sideWords(name: string, { durationMs, areMarked }: ProfileResponse): string {
  const num = durationMs.length;
  if (!areMarked) return `${name} marks no steps: all of it counts as one`;
  return `${name}: mean of ${num} step${num === 1 ? "" : "s"}`;
}

interface SidesProps {
  readonly a: ProfileResponse;
  readonly b: ProfileResponse;
  readonly view: ViewProps;
}

function Roles({ a, b, view }: SidesProps) {
  const [aMs, bMs] = [meanStepMs(a), meanStepMs(b)];
  const by = bMs - aMs;
  const pairs = rolePairs(a, b);
  const most = pairs.reduce(
    (high, one) => Math.max(high, Math.abs(one.b - one.a)),
    Math.abs(by),
  );
  return (
    <section class="compare-headline" aria-label="Time per step by role">
      <p class="compare-sentence">
        <strong>
          {by === 0
            ? "A step of B takes as long as one of A"
            : `A step of B takes ${formatSeconds(Math.abs(by) / 1e3)} ${by > 0 ? "longer" : "less"} than one of A`}
        </strong>{" "}
        <span class="quiet">
          ({percentText(aMs, bMs)}) · {sideWords("A", a)} · {sideWords("B", b)}
        </span>
      </p>
      <table class="compare-roles">
        <thead>
          <tr>
            <th scope="col">Time per step</th>
            <th scope="col" class="num">
              A
            </th>
            <th scope="col" class="num">
              B
            </th>
            <th scope="col" class="num">
              B − A
            </th>
            <th scope="col" class="num" />
            <th scope="col" />
          </tr>
        </thead>
        <tbody>
          {pairs.map((one) => (
            <Row key={one.role} pair={one} most={most} view={view}>
              <th scope="row" title={ROLE_HELP[one.role]}>
                <i
                  class="trace-swatch"
                  style={{ background: roleColour(view.theme, one.role) }}
                />{" "}
                {ROLE_WORDS[one.role]}
              </th>
            </Row>
          ))}
          <Row pair={{ a: aMs, b: bMs }} most={most} view={view}>
            <th scope="row">
              <b>whole step</b>
            </th>
          </Row>
        </tbody>
      </table>
    </section>
  );
}

function Row(props: {
  readonly pair: Pick<RolePair, "a" | "b">;
  readonly most: number;
  readonly view: ViewProps;
  readonly children: ComponentChildren;
}) {
  const { a, b } = props.pair;
  const by = b - a;
  const [less, more] = divergingColours(props.view.theme);
  const half = props.most > 0 ? (50 * Math.abs(by)) / props.most : 0;
  return (
    <tr>
      {props.children}
      <td class="num" title={`${a} ms`}>
        {formatSeconds(a / 1e3)}
      </td>
      <td class="num" title={`${b} ms`}>
        {formatSeconds(b / 1e3)}
      </td>
      <td class="num" title={`${by} ms`}>
        <b>{formatSigned(by / 1e3, "seconds")}</b>
      </td>
      <td class="num quiet">{percentText(a, b)}</td>
      <td class="compare-diverging">
        <span>
          <i
            style={{
              left: `${by < 0 ? 50 - half : 50}%`,
              width: `${half}%`,
              background: by < 0 ? less : more,
            }}
          />
        </span>
      </td>
    </tr>
  );
}
