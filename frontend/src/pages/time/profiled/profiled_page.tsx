/** A page about one table of a trace: its controls, the table, and what is chosen. */

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { Query } from "../../../api/client";
import type { Responses, TableRows } from "../../../api/types.gen";
import { useLive } from "../../../api/live/use_live";
import type { Live } from "../../../api/live/watch";
import { formatSeconds } from "../../../base/durations";
import { Legend } from "../../../widgets/plot/legend";
import { Nothing } from "../../../widgets/state/state";
import { Choice, Switch } from "../../shared/controls/choices";
import { SearchBox } from "../../shared/controls/search_box";
import {
  oneOf,
  switched,
  text,
  usePageState,
  type Labels,
} from "../../shared/page_state";
import type { ViewProps } from "../../shared/view_props";
import { partColour } from "../../../render/palette";
import { AnswerTable } from "../../shared/table/answer_table";
import { columnOf } from "../../shared/table/columns";
import { shortNames } from "../../shared/table/kernel_name";
import { LargestBar } from "./largest_bar";
import { TraceFrame } from "./trace_choice";
import "../../shared/panels/inspector.css";

/** Limit of the route. */
const MOST_ROWS = 2_000;
const TABLE_PX = 620;

const TOPS = ["10", "20", "50", "all"] as const;
const WORDS = {
  text: text("text"),
  top: oneOf("top", TOPS, "all"),
  columns: switched(
    "columns",
    {
      times: ["Times", "Calls and times, tensor cores, launches"],
      efficiency: [
        "Efficiency",
        "FLOP and bytes by input shapes, and shares of the device's peaks",
      ],
    },
    "times",
  ),
};

/**
 * Sorts in the page; where rows are left out, requests the first rows in the chosen
 * order.
 */
export function useProfiledRows<R extends "operators" | "kernels" | "operator_memory">(
  view: ViewProps,
  route: R,
  query: Query,
  rowsOf: (data: Responses[R]) => TableRows,
): Live<Responses[R]> {
  const [cut, setCut] = useState(false);
  const { client, run, ranks, params, pollMs } = view;
  const sort = cut ? (params.get("sort") ?? null) : null;
  const source = params.get("source") ?? null;
  const cycle = params.get("cycle") ?? null;
  const trace = { run: run.id, rank: ranks.rank, source, cycle };
  const subject = { ...trace, top: MOST_ROWS, sort };
  const live = useLive<R>(client, route, { ...subject, ...query }, pollMs);
  if (live.data !== null) {
    const { numRows, numAll } = rowsOf(live.data);
    if (numRows < numAll !== cut) setCut(!cut);
  }
  return live;
}

/** The row with most time, sent or not; "" where nothing took any. */
export function mostWords(table: TableRows): string {
  const column = columnOf(table, table.usual);
  const names = table.columns.find(({ unit }) => unit === "name")?.texts ?? [];
  if (column === undefined || !((column.sum ?? 0) > 0)) return "";
  const { sum, shareOf } = column;
  // The recorder's own time is not the program's.
  const numbers = column.numbers.map((ms, row) =>
    table.colours[row] === "recorder" ? NaN : ms,
  );
  const value = numbers.reduce((most, number) => (number > most ? number : most), 0);
  const name = shortNames(names)[numbers.indexOf(value)];
  const all = sum ?? NaN;
  if (name === undefined) return "";
  const share = ((100 * value) / all).toFixed(value < all ? 1 : 0);
  return `${name} takes ${share} % ${shareOf}: ${formatSeconds(value / 1e3)} of ${formatSeconds(all / 1e3)}.`;
}

const KINDS: Readonly<Record<string, string>> = {
  communication: "communication",
  recorder: "the recorder's own",
};

/** What colours beside the usual one mean. */
function Kinds(props: { readonly view: ViewProps; readonly kinds: readonly string[] }) {
  const named = Object.entries(KINDS).filter(([kind]) => props.kinds.includes(kind));
  if (named.length === 0) return null;
  const items = named.map(([kind, label]) => ({
    label,
    colour: partColour(props.view.theme, kind),
  }));
  return <Legend items={items} />;
}

export function ProfiledPage<R extends "operators" | "kernels">(props: {
  readonly view: ViewProps;
  readonly route: R;
  /** Kinds of rows; `name` is the default. */
  readonly by: Labels<string>;
  readonly search: string;
  /** Words of the URL that a change of the kind removes. */
  readonly leaves?: Readonly<Record<string, null>>;
  readonly tabs?: ComponentChildren;
  readonly isChosen?: (table: TableRows, row: number) => boolean;
  readonly onChoose?: (table: TableRows, row: number, by: string) => void;
  readonly inspector?: (data: Responses[R]) => ComponentChildren;
}) {
  const { view, route, onChoose } = props;
  const [state, setState] = usePageState(view, WORDS);
  const kinds = switched("by", props.by, "name");
  const by = kinds.read(view.params);
  const { columns } = state;
  const query = { by, columns, text: state.text === "" ? null : state.text };
  const live = useProfiledRows(view, route, query, ({ table }) => table);
  return (
    <TraceFrame live={live} contents={route} view={view}>
      {(data, chooser) => {
        const { table, choice } = data;
        const isWhole = state.text === "";
        const most = isWhole ? mostWords(table) : "";
        const numShown = state.top === "all" ? Infinity : Number(state.top);
        const bar = (
          <div class="row">
            {props.tabs}
            {chooser}
            <Switch leaves={props.leaves} view={view} of={kinds} label="One row per" />
            {by !== "category" && (
              <Switch view={view} of={WORDS.columns} label="Columns" />
            )}
            <Choice
              label="Top"
              value={state.top}
              of={TOPS}
              onChange={(top) => view.setParams({ top: top === "all" ? null : top })}
            />
            <SearchBox
              label={props.search}
              text={state.text}
              onText={(value) => setState({ text: value })}
              commands={view.commands}
            />
          </div>
        );
        if (table.numAll === 0 && isWhole) {
          return (
            <>
              {bar}
              <Nothing title={`No ${route} in this trace`}>
                <p>{table.empty}</p>
              </Nothing>
            </>
          );
        }
        const inspector = props.inspector?.(data);
        const chosen = Array.from({ length: table.numRows }, (_, row) => row).find(
          (row) => props.isChosen?.(table, row),
        );
        return (
          <div class={inspector ? "inspected" : ""}>
            <AnswerTable
              view={view}
              table={table}
              word="sort"
              text={state.text}
              most={numShown}
              {...(onChoose && {
                selected: chosen ?? null,
                onSelect: (row: number) => onChoose(table, row, by),
              })}
              head={
                <p>
                  {most !== "" && <strong>{most} </strong>}
                  <span class={most === "" ? "" : "quiet"}>{table.summary}</span>
                </p>
              }
              about={{ source: choice.source, by, columns }}
              heightPx={TABLE_PX}
            >
              {bar}
              {isWhole && (
                <LargestBar
                  table={table}
                  theme={view.theme}
                  {...(onChoose && {
                    onChoose: (row: number) => onChoose(table, row, by),
                  })}
                />
              )}
              <Kinds view={view} kinds={table.colours} />
            </AnswerTable>
            {inspector}
          </div>
        );
      }}
    </TraceFrame>
  );
}
