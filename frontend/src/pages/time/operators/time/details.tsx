import { useState } from "preact/hooks";
import type { OperatorResponse, OperatorsResponse } from "../../../../api/types.gen";
import { useLive } from "../../../../api/live/use_live";
import { Waiting } from "../../../../widgets/state/state";
import { TextButton } from "../../../shared/controls/choices";
import { Drawer } from "../../../shared/panels/drawer";
import { SourceFrame, SourceMenu } from "../../../shared/panels/source_frame";
import type { ViewProps } from "../../../shared/view_props";
import { AnswerTable } from "../../../shared/table/answer_table";
import { Callers } from "./callers_figure";

const TABLE_PX = 220;

export function OperatorDetails(props: {
  readonly view: ViewProps;
  readonly answer: OperatorsResponse;
  readonly name: string;
  /** null: calls of any shapes; empty: calls of unknown shapes. */
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
            <TextButton
              press={() =>
                view.showPage("trace", { find: name, source: answer.choice.source })
              }
            >
              Find it in the trace
            </TextButton>
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
        <Waiting error={error} hasContent={data !== null} blocksPx={[TABLE_PX]} />
        {hasStacks && data !== null && <Places data={data} view={view} />}
        {data !== null && data.numCalls > 0 && (
          <Callers
            data={data}
            view={view}
            hasStacks={hasStacks}
            hasDevices={hasDevices}
          />
        )}
      </Drawer>
    </aside>
  );
}

function Places({
  data,
  view,
}: {
  readonly data: OperatorResponse;
  readonly view: ViewProps;
}) {
  const { stacks, places } = data;
  const [chosen, setChosen] = useState(0);
  const shown = stacks[chosen] ?? stacks[0];
  return (
    <>
      <AnswerTable
        view={view}
        table={places}
        word="place_sort"
        selected={chosen}
        onSelect={setChosen}
        head={<p class="quiet">{places.summary}</p>}
        heightPx={TABLE_PX}
      />
      {shown !== undefined && (
        <ol class="drawer-frames" tabIndex={0} aria-label="Stack, innermost first">
          {shown.frames.map((frame, i) => (
            <li key={i}>
              <SourceFrame frame={frame} />
            </li>
          ))}
          {shown.frames.length === 0 && (
            <li class="quiet">
              These calls have no Python frames: another thread made them, such as
              autograd's.
            </li>
          )}
        </ol>
      )}
    </>
  );
}
