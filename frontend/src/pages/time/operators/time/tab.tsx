/** Operators by the time they took on the host and on devices. */

import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import type { OperatorsBy, OperatorsResponse } from "../../../../api/types.gen";
import { formatInteger } from "../../../../base/bytes";
import { formatSeconds } from "../../../../base/durations";
import { commandsOf } from "../../../../base/commands";
import { useCommands } from "../../../../base/use_commands";
import { originOf } from "../../../../model/words/origin";
import { routeSort } from "../../../../model/shown_rows";
import { ExportMenu } from "../../../../widgets/export/export_menu";
import { tableOf } from "../../../../widgets/row_table/columns";
import { RowTable } from "../../../../widgets/row_table/row_table";
import { useSort } from "../../../../widgets/row_table/use_sort";
import { Nothing } from "../../../../widgets/state/state";
import { ProfiledBar, profiledQuery } from "../../profiled/bar";
import { Most } from "../../profiled/most";
import { useProfiledRows } from "../../profiled/rows";
import { listedWords, topRows } from "../../profiled/top_choice";
import { TraceFrame } from "../../profiled/trace_choice";
import type { ViewProps } from "../../../shared/view_props";
import { OperatorDrawer, type ChosenOperator } from "./drawer";
import { BY_NAME, BY_SHAPES, timeColumns, usualSort } from "./columns";

const TABLE_PX = 620;
const NOTHING = new Float64Array();

const BY_WORDS: Readonly<Record<OperatorsBy, readonly [string, string]>> = {
  name: ["Name", "One row per operator"],
  shapes: ["Name and shapes", "One row per operator and shapes of its inputs"],
};

export function TimeTab({
  view,
  tabs,
}: {
  readonly view: ViewProps;
  readonly tabs: ComponentChildren;
}) {
  const { client, params, setParams } = view;
  const by: OperatorsBy = params.get("by") === "shapes" ? "shapes" : "name";
  const text = params.get("text") ?? "";
  const live = useProfiledRows(
    client,
    "operators",
    profiledQuery(view, by),
    routeSort(params.get("sort"), by === "name" ? BY_NAME : BY_SHAPES),
    view.pollMs,
  );
  return (
    <TraceFrame live={live} what="operators" setParams={setParams}>
      {(data, chooser) => {
        const bar = (
          <ProfiledBar
            view={view}
            options={["name", "shapes"]}
            by={by}
            words={BY_WORDS}
            leaves={{ operator: null, shapes: null }}
            searchLabel="Search operators"
          >
            {tabs}
            {chooser}
          </ProfiledBar>
        );
        return data.numRows === 0 && text === "" ? (
          <>
            {bar}
            <NoOperators isWhole={data.choice.problems.length === 0} />
          </>
        ) : (
          <Table data={data} view={view} isWhole={text === ""}>
            {bar}
          </Table>
        );
      }}
    </TraceFrame>
  );
}

function NoOperators({ isWhole }: { readonly isWhole: boolean }) {
  return (
    <Nothing title="No operators in this trace">
      <p>
        {isWhole
          ? "It was recorded without the host. Record ProfilerActivity.CPU (automatic)."
          : "The lines above say what is wrong with this trace."}
      </p>
    </Nothing>
  );
}

function chosenOf(view: ViewProps, by: OperatorsBy): ChosenOperator | null {
  const name = view.params.get("operator") ?? "";
  if (name === "") return null;
  const shapes = view.params.get("shapes") ?? "";
  return { name, shapes: by === "shapes" ? shapes : null };
}

function Table({
  data,
  view,
  isWhole,
  children,
}: {
  readonly data: OperatorsResponse;
  readonly view: ViewProps;
  /** Nothing is searched for. */
  readonly isWhole: boolean;
  /** Between the answer and the table. */
  readonly children: ComponentChildren;
}) {
  const { params, setParams } = view;
  const { totals } = data;
  const usual = usualSort(data.hasDevices);
  const columns = useMemo(() => timeColumns(data, view.theme), [data, view.theme]);
  const num = data.name.length;
  const { rows, ...sorting } = useSort(
    columns,
    num,
    usual,
    params.get("sort"),
    (sort) => setParams({ sort }),
  );
  const shown = topRows(view, rows);
  const chosen = chosenOf(view, data.by);
  const selected =
    chosen === null
      ? -1
      : data.name.findIndex(
          (name, row) =>
            name === chosen.name && (data.shapes[row] ?? "") === (chosen.shapes ?? ""),
        );
  const close = (): void => setParams({ operator: null, shapes: null });
  useCommands(view.commands, () =>
    commandsOf("operators", "Operators", [
      ["close", "Close the chosen operator", close, "Escape"],
    ]),
  );
  return (
    <>
      <section aria-label="Operators">
        <div class="panel-head">
          <Most
            shares={{
              names: data.name,
              ms: !isWhole
                ? NOTHING
                : data.hasDevices
                  ? data.deviceSelfMs
                  : data.hostSelfMs,
              sumMs: data.hasDevices ? totals.deviceSelfMs : totals.hostSelfMs,
              of: data.hasDevices ? "of the device’s time" : "of the host’s time",
            }}
            rest={sumWords(data, shown.length)}
          />
          <ExportMenu
            subject="the table of operators"
            source={{
              origin: originOf(data.run),
              name: "operators",
              table: () => tableOf(columns, rows),
              about: () => ({ source: data.choice.source, by: data.by }),
            }}
          />
        </div>
        {children}
        {data.by === "shapes" && !data.hasShapes && (
          <p class="quiet">
            The trace has no shapes: record them with record_shapes=True of
            torch.profiler.
          </p>
        )}
        <RowTable
          label="Operators"
          columns={columns}
          rows={shown}
          selected={selected < 0 ? null : selected}
          onSelect={(row) => {
            const shapes = data.shapes[row] ?? "";
            setParams({
              operator: data.name[row] ?? null,
              shapes: shapes === "" ? null : shapes,
            });
          }}
          {...sorting}
          empty="No operator holds this text."
          heightPx={TABLE_PX}
        />
      </section>
      {chosen !== null && (
        <OperatorDrawer
          key={`${chosen.name} ${chosen.shapes ?? ""}`}
          view={view}
          source={data.choice.source}
          chosen={chosen}
          hasStacks={data.hasStacks}
          hasDevices={data.hasDevices}
          close={close}
        />
      )}
    </>
  );
}

function sumWords(data: OperatorsResponse, numShown: number): string {
  const { totals, numRows } = data;
  const parts = [
    `${formatInteger(numRows)} ${numRows === 1 ? "row" : "rows"}`,
    `${formatInteger(totals.numCalls)} calls`,
    `${formatSeconds(totals.hostSelfMs / 1e3)} on the host`,
  ];
  if (data.hasDevices) {
    parts.push(`${formatSeconds(totals.deviceSelfMs / 1e3)} on devices`);
  }
  return `${parts.join(", ")}${listedWords(numShown, numRows)}.`;
}
