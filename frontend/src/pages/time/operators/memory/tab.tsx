import type { ComponentChildren } from "preact";
import { useLayoutEffect, useMemo, useState } from "preact/hooks";
import type { OperatorCharge, OperatorMemoryResponse } from "../../../../api/types.gen";
import { commandsOf, useCommands } from "../../../../base/commands";
import { categoryColours } from "../../../../model/category";
import { Nothing } from "../../../../widgets/state/state";
import { Choice, Switch } from "../../../shared/controls/choices";
import { AnswerTable } from "../../../shared/table/answer_table";
import type { Colours } from "../../../shared/table/columns";
import { useProfiledRows } from "../../profiled/profiled_page";
import { optional, switched, text, usePageState } from "../../../shared/page_state";
import { SearchBox } from "../../../shared/controls/search_box";
import { TraceFrame } from "../../profiled/trace_choice";
import { useRange, type RangeState } from "../../../shared/range/use_range";
import type { ViewProps } from "../../../shared/view_props";
import { AtPeak, HOLDERS_BY } from "./at_peak";
import { Curve } from "./curve";

const CURVE_PX = 1600;
const T_WORDS = { low: "t0", high: "t1" } as const;

const WORDS = {
  charge: switched<OperatorCharge>(
    "charge",
    {
      allocating: [
        "What allocated",
        "A release counts for the operator that had allocated the memory",
      ],
      freeing: [
        "What frees",
        "A release counts for the operator in which it happens: torch-tb-profiler's way",
      ],
    },
    "allocating",
  ),
  by: HOLDERS_BY,
  text: text("text"),
  device: optional("device"),
};

export function MemoryTab({
  view,
  tabs,
}: {
  readonly view: ViewProps;
  readonly tabs: ComponentChildren;
}) {
  const { params, setParams } = view;
  const [state, setState] = usePageState(view, WORDS);
  const { charge, text: wanted } = state;
  const range = useRange(params, setParams, T_WORDS);
  const live = useProfiledRows(
    view,
    "operator_memory",
    {
      device: state.device,
      charge,
      by: state.by,
      t0: range.settled?.low ?? null,
      t1: range.settled?.high ?? null,
      px: CURVE_PX,
      text: wanted === "" ? null : wanted,
    },
    ({ operators }) => operators,
  );
  return (
    <TraceFrame
      live={live}
      contents="memory of operators"
      view={view}
      leaves={{ device: null, t0: null, t1: null }}
    >
      {(data, chooser) =>
        data.devices.length === 0 ? (
          <>
            <div class="row">
              {tabs}
              {chooser}
            </div>
            <Nothing title="No memory events in this trace">
              <p>
                It was recorded without them. Record them with profile_memory=True of
                torch.profiler; what each operator allocates and frees is then in the
                trace.
              </p>
            </Nothing>
          </>
        ) : (
          <>
            <div class="row">
              {tabs}
              {chooser}
              <Choice
                label="Device"
                value={data.device}
                of={data.devices.map(({ key, title }) => [key, title])}
                onChange={(device) => view.setParams({ device }, "push")}
              />
              <Switch
                view={view}
                of={WORDS.charge}
                label="Releases are charged to"
                title="Charged to"
                disabled={() => !data.hasAddresses}
              />
              <SearchBox
                label="Search operators"
                text={wanted}
                onText={(value) => setState({ text: value })}
                commands={view.commands}
              />
            </div>
            {data.device === null ? (
              <p class="quiet">This trace has no such device: choose another one.</p>
            ) : (
              <OfDevice data={data} view={view} range={range} text={wanted} />
            )}
          </>
        )
      }
    </TraceFrame>
  );
}

function OfDevice(props: {
  readonly data: OperatorMemoryResponse;
  readonly view: ViewProps;
  readonly range: RangeState;
  readonly text: string;
}) {
  const { data, view, range } = props;
  const { categories, operators, allocations, choice, device, charge } = data;
  const [pointed, setPointed] = useState<number | null>(null);
  const [chosen, setChosen] = useState<number | null>(null);
  const extent = { low: 0, high: Math.max(data.durationMs, 1e-6) };
  useLayoutEffect(() => {
    // Rows are indices into one answer.
    setPointed(null);
    setChosen(null);
  }, [allocations]);
  useCommands(view.commands, () =>
    commandsOf("operators", "Operators", [
      ["clear", "Show the whole trace", () => range.setRange(null), "Escape"],
    ]),
  );
  const colours = useMemo<Colours>(() => {
    const all = categoryColours(view.theme, categories);
    return Object.fromEntries(categories.map(({ name }, i) => [name, all[i] ?? ""]));
  }, [view.theme, categories]);
  const about = { source: choice.source, device, charge };
  const shared = { view, colours, about, text: props.text };
  return (
    <>
      <Curve
        data={data}
        view={view}
        extent={extent}
        range={range}
        row={pointed ?? chosen}
      />
      <AtPeak {...shared} data={data} />
      <AnswerTable {...shared} table={operators} word="sort" />
      <AnswerTable
        {...shared}
        table={allocations}
        word="asort"
        selected={chosen}
        onSelect={(row) => setChosen(row === chosen ? null : row)}
        onHover={setPointed}
      />
    </>
  );
}
