/** Operators, kernels, modules or memory of two traces, joined by name. */

import { useMemo } from "preact/hooks";
import type { ProfileResponse } from "../../../api/types.gen";
import { formatInteger } from "../../../base/bytes";
import { originOf } from "../../../model/words/origin";
import { clicked, sortOf, sortWord } from "../../../model/shown_rows";
import { ExportMenu } from "../../../widgets/export/export_menu";
import type { ExportSource } from "../../../widgets/export/source";
import { RowTable } from "../../../widgets/row_table/row_table";
import { Nothing, Skeleton, Waiting } from "../../../widgets/state/state";
import { Choice, Segmented } from "../../shared/controls/choices";
import { SearchBox } from "../../shared/controls/search_box";
import { traceWords, useProfiled } from "../../time/profiled/trace_choice";
import { profileColumns } from "./columns";
import { TABLE_ROUTES, TABLE_WORDS, TABLES } from "./words";
import {
  BY_CHANGE,
  joined,
  measuresOf,
  pairsOf,
  pairsTable,
  shownPairs,
  sideOf,
  SORT_KEYS,
  type ProfileSide,
} from "./profiles";
import type { ProfilesPartProps } from "./part";
import { ONLY, ONLY_WORDS } from "../params";

const TABLE_PX = 560;
/** The most rows that a route sends. */
const TOP = 2_000;

const PER_WORDS = {
  step: ["Step", "Sums divided by each trace’s number of profiled steps"],
  trace: ["Trace", "Sums over each whole trace"],
} as const;

interface TablesProps extends ProfilesPartProps {
  readonly a: ProfileResponse;
  readonly b: ProfileResponse;
}

export function ProfileTables(props: TablesProps) {
  const { view, params, a, b } = props;
  const of = params.table;
  const asked = ({ run, choice }: ProfileResponse) => ({
    run: run.id,
    source: choice.source,
    top: TOP,
  });
  const aLive = useProfiled(view.client, TABLE_ROUTES[of], asked(a), view.pollMs);
  const bLive = useProfiled(view.client, TABLE_ROUTES[of], asked(b), view.pollMs);
  const sides = useMemo(
    () =>
      [aLive.data, bLive.data].map((one) => (one === null ? null : sideOf(of, one))),
    [of, aLive.data, bLive.data],
  );
  const [aSide = null, bSide = null] = sides;
  const error = aLive.error ?? bLive.error;
  const stale = aLive.stale || bLive.stale;
  return (
    <section
      aria-label="Difference as a table"
      class={stale ? "stale" : ""}
      aria-busy={stale}
    >
      <div class="panel-head">
        <h2>Difference by</h2>
        <Segmented
          label="By what"
          options={TABLES}
          chosen={of}
          words={(one) => [TABLE_WORDS[one][0], TABLE_WORDS[one][1]]}
          onChoose={(one) => {
            const table = one === "operators" ? null : one;
            view.setParams({ table, measure: null }, "push");
          }}
        />
      </div>
      <Waiting error={error} hasContent={aSide !== null && bSide !== null} />
      {aSide !== null && bSide !== null ? (
        <Rows {...props} aSide={aSide} bSide={bSide} />
      ) : (
        error === null && <Skeleton heightPx={TABLE_PX} />
      )}
    </section>
  );
}

function Rows(
  props: TablesProps & { readonly aSide: ProfileSide; readonly bSide: ProfileSide },
) {
  const { view, params, a, b, aSide, bSide } = props;
  const { setParams } = view;
  const { table: of, only, find } = params;
  const measures = measuresOf(of, [aSide, bSide]);
  const measure = measures.find(({ key }) => key === params.measure) ?? measures[0];
  const [aSteps, bSteps] = [a.durationMs.length, b.durationMs.length];
  const usualPer = aSteps === bSteps ? "trace" : "step";
  const perWord = params.per === "" ? usualPer : params.per;
  const per = perWord === "step" ? { a: aSteps, b: bSteps } : { a: 1, b: 1 };
  const sort = sortOf(view.params.get("sort"), SORT_KEYS, BY_CHANGE);
  const rows = useMemo(() => joined(aSide.names, bSide.names), [aSide, bSide]);
  const pairs = useMemo(
    () => (measure === undefined ? null : pairsOf(rows, measure, aSide, bSide, per)),
    [rows, measure, aSide, bSide, per.a, per.b],
  );
  const shown = useMemo(
    () => (pairs === null ? [] : shownPairs(rows, pairs, { only, find, sort })),
    [rows, pairs, only, find, sort.key, sort.descending],
  );
  const source: ExportSource = {
    origin: originOf(view.run),
    name: `profiles by ${of}`,
    table: () => pairsTable(of, rows, shown, aSide, bSide, per),
    about: () => ({ a: about(a), b: about(b), per: perWord, only }),
  };
  props.exporter.current = source;
  const empty = [aSide, bSide].map(({ names }) => names.length === 0);
  if (measure === undefined || pairs === null || empty.includes(true)) {
    // What a trace did not record is no difference.
    const names = empty.every(Boolean)
      ? "Neither has"
      : `${empty[0] === true ? "A" : "B"} has`;
    return (
      <Nothing title={`Nothing to compare by ${of}`}>
        <p>
          {names} {TABLE_WORDS[of][3]}.
        </p>
      </Nothing>
    );
  }
  const left = aSide.left + bSide.left;
  return (
    <>
      <div class="trace-bar compare-bar">
        <Choice
          label="Of"
          value={measure.key}
          onChange={(key) =>
            setParams({ measure: key === measures[0]?.key ? null : key }, "push")
          }
        >
          {measures.map(({ key, title }) => (
            <option key={key} value={key}>
              {title}
            </option>
          ))}
        </Choice>
        <Segmented
          label="Per step or per trace"
          title="Per"
          options={["trace", "step"] as const}
          chosen={perWord}
          words={(one) => PER_WORDS[one]}
          onChoose={(one) => setParams({ per: one === usualPer ? null : one })}
        />
        <Segmented
          label="Which rows"
          options={ONLY}
          chosen={only}
          words={(one) => ONLY_WORDS[one]}
          onChoose={(one) => setParams({ side: one === "all" ? null : one })}
        />
        <SearchBox
          label="Find in the table"
          text={find}
          onText={(text) => setParams({ find: text === "" ? null : text })}
          commands={view.commands}
        />
        <span class="quiet" role="status">
          {formatInteger(shown.length)} of {formatInteger(rows.names.length)}
        </span>
        <span class="end">
          <ExportMenu subject="the table" source={source} />
        </span>
      </div>
      <RowTable
        label={`Difference by ${of}`}
        columns={profileColumns(rows, pairs, measure, TABLE_WORDS[of][2], view)}
        rows={shown}
        sort={sort}
        onSort={(key) => {
          const next = clicked(sort, key, key === "name");
          setParams({ sort: sortWord(next, BY_CHANGE) });
        }}
        empty="Nothing matches."
        heightPx={TABLE_PX}
      />
      {aSide.device !== "" && (
        <p class="quiet">
          Memory of {aSide.device}
          {aSide.device !== bSide.device && ` in A, of ${bSide.device} in B`}.
        </p>
      )}
      {left > 0 && (
        <p class="quiet">
          {formatInteger(left)} rows of the smallest are not among them; a row that one
          side seems to lack may be one of those.
        </p>
      )}
    </>
  );
}

function about({ run, choice }: ProfileResponse): unknown {
  const trace = choice.traces.find(({ id }) => id === choice.source);
  return { run: run.name, trace: trace === undefined ? null : traceWords(trace) };
}
