/** One operator: the places it is called from, with their frames, and what it calls. */

import { useMemo, useState } from "preact/hooks";
import type {
  OperatorResponse,
  OperatorsResponse,
  OperatorStack,
} from "../../../../api/types.gen";
import { formatInteger } from "../../../../base/bytes";
import { formatSeconds } from "../../../../base/durations";
import { useLive } from "../../../../api/use_live";
import type { Theme } from "../../../../base/tokens";
import { familyColour } from "../../profiled/family_colours";
import { partColour } from "../../../../render/palette";
import {
  ROW_PX,
  RowTable,
  type RowColumn,
} from "../../../../widgets/row_table/row_table";
import {
  barOf,
  countCell,
  longestOf,
  numberColumn,
} from "../../../../widgets/row_table/columns";
import { Failure, Skeleton } from "../../../../widgets/state/state";
import { Drawer } from "../../../shared/panels/drawer";
import { SourceFrame, SourceMenu } from "../../../shared/panels/source_frame";
import type { ViewProps } from "../../../shared/view_props";
import { stackLabel } from "./callers";
import { Callers } from "./callers_figure";

const TABLE_PX = 220;
const HEAD_PX = 32;

export function OperatorDetails(props: {
  readonly view: ViewProps;
  readonly answer: OperatorsResponse;
  readonly name: string;
  /** Null: calls of any shapes; empty: those whose shapes are not known. */
  readonly shapes: string | null;
  readonly close: () => void;
}) {
  const { view, answer, name, shapes } = props;
  const { hasStacks, hasDevices } = answer;
  const { data, error } = useLive(
    view.client,
    "operator",
    {
      run: view.run.id,
      rank: view.ranks.rank,
      source: answer.choice.source,
      by: shapes === null ? "name" : "shapes",
      name,
      shapes,
    },
    view.pollMs,
  );
  return (
    <aside class="inspector" aria-label="Inspector">
      <Drawer
        label="The chosen operator"
        title={
          <>
            {name}{" "}
            {shapes === "" ? (
              <span class="quiet">without shapes</span>
            ) : (
              shapes !== null && <code>{shapes}</code>
            )}
          </>
        }
        actions={
          <>
            <button
              type="button"
              class="text-button"
              onClick={() =>
                view.showPage("trace", { find: name, source: answer.choice.source })
              }
            >
              Find it in the trace
            </button>
            {hasStacks && <SourceMenu />}
          </>
        }
        close={props.close}
      >
        {!hasStacks && (
          <p class="quiet">
            The trace has no stacks, so where it is called from is not known. Record
            them with with_stack=True of torch.profiler; it makes each operator slower.
          </p>
        )}
        {error !== null && data === null && <Failure failure={error} />}
        {data === null && error === null && <Skeleton heightPx={TABLE_PX} />}
        {hasStacks && data !== null && (
          <Stacks data={data} theme={view.theme} hasDevices={hasDevices} />
        )}
        {data !== null && data.numCalls > 0 && (
          <Callers {...{ data, view, hasStacks, hasDevices }} />
        )}
      </Drawer>
    </aside>
  );
}

function Stacks({
  data,
  theme,
  hasDevices,
}: {
  readonly data: OperatorResponse;
  readonly theme: Theme;
  readonly hasDevices: boolean;
}) {
  const { stacks } = data;
  const [chosen, setChosen] = useState(0);
  const columns = useMemo(
    () => stackColumns(stacks, theme, hasDevices),
    [stacks, theme, hasDevices],
  );
  const rows = useMemo(() => stacks.map((_, row) => row), [stacks]);
  const shown = stacks[chosen] ?? stacks[0];
  if (shown === undefined) {
    return <p class="quiet">The trace holds no call of this operator.</p>;
  }
  return (
    <>
      <p class="quiet">
        {formatInteger(data.numCalls)} {data.numCalls === 1 ? "call" : "calls"} from{" "}
        {formatInteger(stacks.length)} {stacks.length === 1 ? "place" : "places"}
        {data.numLookedAt < data.numCalls &&
          `, of the ${formatInteger(data.numLookedAt)} longest`}
        .
      </p>
      <RowTable
        label="Places it is called from"
        columns={columns}
        rows={rows}
        selected={chosen}
        onSelect={setChosen}
        sort={null}
        empty="No stacks."
        heightPx={Math.min(TABLE_PX, HEAD_PX + stacks.length * ROW_PX)}
        steady
      />
      <ol
        class="operator-frames small"
        tabIndex={0}
        aria-label="Stack, innermost first"
      >
        {shown.frames.map((frame, i) => (
          <li key={i}>
            <SourceFrame frame={frame} />
          </li>
        ))}
        {shown.frames.length === 0 && (
          <li class="quiet">
            No Python frame lies around these calls: another thread made them, such as
            autograd's.
          </li>
        )}
      </ol>
    </>
  );
}

function stackColumns(
  stacks: readonly OperatorStack[],
  theme: Theme,
  hasDevices: boolean,
): readonly RowColumn[] {
  const timed = (key: string, title: string, ms: readonly number[], colour: string) => {
    const longest = longestOf(ms);
    return numberColumn(key, title, "72px", ms, (value) => ({
      text: formatSeconds(value / 1e3),
      title: `${value} ms`,
      bar: barOf(value, longest, colour),
    }));
  };
  const hostMs = stacks.map((stack) => stack.hostMs);
  const deviceMs = stacks.map((stack) => stack.deviceMs);
  const calls = stacks.map((stack) => stack.numCalls);
  return [
    {
      key: "place",
      title: "Called from",
      numeric: false,
      width: "minmax(120px, 1fr)",
      cell: (row) => {
        const frames = stacks[row]?.frames ?? [];
        return { text: stackLabel(frames), title: frames.slice(0, 12).join("\n") };
      },
    },
    numberColumn("calls", "Calls", "52px", calls, countCell),
    timed("host", "Host", hostMs, partColour(theme, "forward")),
    ...(hasDevices
      ? [timed("device", "Device", deviceMs, familyColour(theme, "kernel"))]
      : []),
  ];
}
