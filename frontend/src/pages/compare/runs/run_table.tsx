import { useMemo, useRef } from "preact/hooks";
import type { RunTableResponse, TableColumn, TableRows } from "../../../api/types.gen";
import { useLive } from "../../../api/live/use_live";
import { Status } from "../../../widgets/icon/icon";
import {
  absentCell,
  type RowCell,
  type RowColumn,
} from "../../../widgets/row_table/columns";
import { Waiting } from "../../../widgets/state/state";
import { standingLook } from "../../shared/run_standing";
import { AnswerTable } from "../../shared/table/answer_table";
import { columnOf, rowsHolding } from "../../shared/table/columns";
import { NO_CHOICE, ofRunA, type PartProps } from "../params";
import { useOtherRun } from "./other_run";

const POLL_MS = 10_000;
const TABLE_PX = 620;
const NO_TEXTS: readonly string[] = [];
const SEARCH_WORD = "runs_find";
const WIDTHS = { name: "minmax(176px, 3fr)", verdict: "minmax(120px, 1fr)" };
/** Further settings that differ are in files alone. */
const MAX_SETTINGS = 5;

export function RunsPart(part: PartProps) {
  const { run } = useOtherRun(part, false);
  return <RunTable {...part} runA={run?.id ?? null} leaves={{ part: null }} />;
}

/** Where no run is like B. */
export function ChooseRun(part: PartProps) {
  return (
    <>
      <p class="compare-sentence" role="status">
        <strong>No other run is like {part.view.run.name}.</strong> None has its device,
        and its name, folder or number of ranks: choose one.
      </p>
      <RunTable {...part} runA={null} leaves={{}} />
    </>
  );
}

interface RunTableProps extends PartProps {
  readonly runA: string | null;
  /** What a click on a row changes besides. */
  readonly leaves: { readonly part?: null };
}

/** All runs; a click on one sets it against the open run, which is B. */
export function RunTable(props: RunTableProps) {
  const { view } = props;
  const { data, error } = useLive(view.client, "run_table", {}, POLL_MS);
  return (
    <>
      <Waiting error={error} hasContent={data !== null} blocksPx={[TABLE_PX]} />
      {data !== null && <Rows {...props} answer={data} />}
    </>
  );
}

function Rows(props: RunTableProps & { readonly answer: RunTableResponse }) {
  const { view, params, change, runA, answer, leaves } = props;
  const { run, chooseRun } = view;
  const { standings } = answer;
  const text = view.params.get(SEARCH_WORD) ?? "";
  const table = useMemo(() => withDifferences(answer.table, text), [answer, text]);
  const idOf = (row: number): string => standings[row]?.run ?? "";
  const chooseA = (row: number): void => change(ofRunA(idOf(row), run), "push");
  const chooseB = (row: number): void => {
    // A that becomes B leaves its place to the run that was B.
    const isA = idOf(row) === runA && runA !== run.id;
    const aRun = isA ? run.id : params.aRun;
    change({ aRun, aRank: "", a: NO_CHOICE, b: NO_CHOICE }, "push");
    chooseRun(idOf(row));
  };
  const names = columnOf(table, "name")?.texts ?? NO_TEXTS;
  const choices = useRef({ chooseA, chooseB });
  choices.current = { chooseA, chooseB };
  const before = useMemo(() => {
    const ids = standings.map((standing) => standing.run);
    return [sideColumn(ids, names, { a: runA, b: run.id }, choices)];
  }, [standings, names, runA, run.id]);
  const cells = useMemo(
    () => ({ verdict: verdictCell(standings, columnOf(table, "verdict")) }),
    [standings, table],
  );
  return (
    <AnswerTable
      view={view}
      table={table}
      before={before}
      cells={cells}
      widths={WIDTHS}
      word="runs_sort"
      find={{ label: "Find runs", word: SEARCH_WORD, commands: view.commands }}
      isMarked={(row) => [run.id, runA].includes(idOf(row))}
      onSelect={(row) => {
        const isB = idOf(row) === run.id;
        change({ ...(isB ? {} : ofRunA(idOf(row), run)), ...leaves }, "push");
      }}
      head={
        <>
          <h2>Runs</h2>
          <span class="quiet">
            {table.summary} A click compares {run.name} with that run.
          </span>
        </>
      }
      heightPx={TABLE_PX}
      shell={view}
    />
  );
}

type Choose = (row: number) => void;

/** A press of A or B does not open the row. */
function sideColumn(
  ids: readonly string[],
  names: readonly string[],
  chosen: { readonly a: string | null; readonly b: string },
  choices: { readonly current: { readonly chooseA: Choose; readonly chooseB: Choose } },
): RowColumn {
  return {
    key: "side",
    title: "Side",
    hint: "The two runs that are compared: B is the open one",
    numeric: false,
    width: "60px",
    keepsWidth: true,
    cell: (row) => ({
      text: "",
      title: "",
      content: (
        <>
          <SideButton
            side="A"
            name={names[row] ?? ""}
            pressed={ids[row] === chosen.a}
            press={() => choices.current.chooseA(row)}
          />{" "}
          <SideButton
            side="B"
            name={names[row] ?? ""}
            pressed={ids[row] === chosen.b}
            press={() => choices.current.chooseB(row)}
          />
        </>
      ),
    }),
  };
}

function verdictCell(
  standings: RunTableResponse["standings"],
  verdicts: TableColumn | undefined,
): (row: number) => RowCell {
  return (row) => {
    const standing = standings[row];
    const look = standing === undefined ? null : standingLook(standing);
    if (look === null) return absentCell(verdicts?.absent ?? "");
    return { text: look.word, content: <Status look={look} /> };
  };
}

function SideButton(props: {
  readonly side: "A" | "B";
  readonly name: string;
  readonly pressed: boolean;
  readonly press: () => void;
}) {
  const { side, name, pressed, press } = props;
  return (
    <button
      type="button"
      class="chip"
      aria-label={`${name} as ${side}`}
      title={`Choose ${name} as ${side}`}
      aria-pressed={pressed}
      onClick={(event) => {
        event.stopPropagation();
        press();
      }}
    >
      {side}
    </button>
  );
}

/** Of settings only the first that differ between the runs that a search leaves. */
export function withDifferences(table: TableRows, text: string): TableRows {
  const rows = rowsHolding(table, text);
  let numShown = 0;
  const columns = table.columns.map((column) => {
    if (!column.key.startsWith("setting:")) return column;
    const values = column.texts.filter(
      (value, row) => value !== "" && rows?.has(row) !== false,
    );
    if (new Set(values).size > 1 && numShown < MAX_SETTINGS) {
      numShown += 1;
      return column;
    }
    return { ...column, title: "" };
  });
  return { ...table, columns };
}
