/** Kernels: what ran on the device, how often, how long, and how well it filled it. */

import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import type { KernelsResponse } from "../../../api/types.gen";
import { formatInteger } from "../../../base/bytes";
import { originOf } from "../../../model/words/origin";
import { routeSort } from "../../../model/shown_rows";
import { familyColour } from "../profiled/family_colours";
import { ExportMenu } from "../../../widgets/export/export_menu";
import { RowTable } from "../../../widgets/row_table/row_table";
import { useSort } from "../../../widgets/row_table/use_sort";
import { Nothing } from "../../../widgets/state/state";
import { ProfiledBar, profiledQuery } from "../profiled/bar";
import { Most } from "../profiled/most";
import { useProfiledRows } from "../profiled/rows";
import { listedWords, topRows } from "../profiled/top_choice";
import { TraceFrame } from "../profiled/trace_choice";
import type { ViewProps } from "../../shared/view_props";
import { kernelColumns, kernelsTable, BY_LAUNCH, BY_KERNEL, USUAL } from "./columns";

const TABLE_PX = 620;
/** What was searched for may lack what takes most. */
const NOTHING = new Float64Array();

const BY_WORDS = {
  name: ["Kernel", "One row per kernel"],
  properties: [
    "Kernel, operator and launch",
    "One row per kernel, launching operator, grid, block, registers and shared memory",
  ],
} as const;

export function KernelsView(props: ViewProps) {
  const { client, params, setParams } = props;
  const by = params.get("by") === "properties" ? "properties" : "name";
  const live = useProfiledRows(
    client,
    "kernels",
    profiledQuery(props, by),
    routeSort(params.get("sort"), by === "name" ? BY_KERNEL : BY_LAUNCH),
    props.pollMs,
  );
  return (
    <TraceFrame live={live} what="kernels" setParams={setParams}>
      {(data, chooser) =>
        data.hasKernels ? (
          <Table data={data} view={props}>
            <ProfiledBar
              view={props}
              options={["name", "properties"]}
              by={by}
              words={BY_WORDS}
              leaves={{}}
              searchLabel="Search kernels and operators"
            >
              {chooser}
            </ProfiledBar>
          </Table>
        ) : (
          <>
            <div class="trace-bar">{chooser}</div>
            <Nothing title="No kernels in this trace">
              <p>
                It was recorded without a device, or without its activities. With one,
                record ProfilerActivity.CUDA (automatic).
              </p>
            </Nothing>
          </>
        )
      }
    </TraceFrame>
  );
}

function Table({
  data,
  view,
  children,
}: {
  readonly data: KernelsResponse;
  readonly view: ViewProps;
  /** Between the answer and the table. */
  readonly children: ComponentChildren;
}) {
  const { params, setParams, theme } = view;
  const columns = useMemo(() => kernelColumns(data, theme), [data, theme]);
  const num = data.name.length;
  const { rows, ...sorting } = useSort(
    columns,
    num,
    USUAL,
    params.get("sort"),
    (sort) => setParams({ sort }),
  );
  const shown = topRows(view, rows);
  const isWhole = (params.get("text") ?? "") === "";
  const cores = data.totalAllMs > 0 ? data.tensorCoreMs / data.totalAllMs : 0;
  return (
    <section aria-label="Kernels">
      <div class="panel-head">
        <Most
          shares={{
            names: data.name,
            ms: isWhole ? data.totalMs : NOTHING,
            sumMs: data.totalAllMs,
            of: "of the kernels’ time",
          }}
          rest={`${formatInteger(data.numRows)} ${data.numRows === 1 ? "row" : "rows"}, ${(100 * cores).toFixed(1)} % of the time with tensor cores${listedWords(shown.length, data.numRows)}.`}
        />
        <ExportMenu
          subject="the table of kernels"
          source={{
            origin: originOf(data.run),
            name: "kernels",
            table: () => kernelsTable(data, theme),
            about: () => ({ source: data.choice.source, by: data.by }),
          }}
        />
      </div>
      {children}
      <RowTable
        label="Kernels"
        columns={columns}
        rows={shown}
        {...sorting}
        empty="No kernel holds this text."
        heightPx={TABLE_PX}
      />
      {data.isCommunication.includes(1) && (
        <p class="quiet">
          <i
            class="trace-swatch"
            style={{ background: familyColour(view.theme, "communication") }}
          />{" "}
          communication
        </p>
      )}
    </section>
  );
}
