/**
 * The picture shows one allocator history; beside it is the ledger of its moment, or
 * the chosen block.
 */

import { Icon } from "../../../widgets/icon/icon";
import { Skeleton, Waiting } from "../../../widgets/state/state";
import { TextButton } from "../../shared/controls/choices";
import { usePageState } from "../../shared/page_state";
import type { ViewProps } from "../../shared/view_props";
import { BlockDrawer } from "../history/block_drawer";
import { HistoryFrame, HistoryNotes } from "../history/frame";
import "./blocks.css";
import { FlamePanel } from "./held/flame_panel";
import { LedgerBar } from "./held/ledger_bar";
import { HoldersTable } from "./held/stack_table";
import { Picture } from "./picture";
import { RangeDrawer } from "./range_drawer";
import { BLOCKS, type BlocksState } from "./state";
import { PictureBar } from "./toolbar";
import { useBlocks, type Blocks } from "./use_blocks";
import type { OpenHistory } from "../history/use_history";

/** Height of the top holders, from their heading to the end of the column. */
const HOLDERS_PX = 218;
const FLAME_PX = 320;

export function BlocksView(props: ViewProps) {
  const [state, set] = usePageState(props, BLOCKS);
  return (
    <HistoryFrame
      view={props}
      history={state.history}
      device={state.device}
      tools={(open) =>
        open !== null && <PictureBar view={props} open={open} state={state} set={set} />
      }
    >
      {(open) => <OfDevice view={props} state={state} open={open} />}
    </HistoryFrame>
  );
}

function OfDevice(props: {
  readonly view: ViewProps;
  readonly state: BlocksState;
  readonly open: OpenHistory;
}) {
  const of = useBlocks(props.view, props.state, props.open);
  const { shown, device, stacks, stacksError } = of;
  const { tiles, error } = shown;
  return (
    <>
      <Waiting
        error={error}
        hasContent={tiles.length > 0}
        note="MemBoard retries automatically."
      />
      {device.numBefore === device.numAllocations && (
        <p class="quiet">
          <Icon name="info" /> No allocation happened in this history: only what was
          live when it was taken is known. Give torch.cuda.memory._record_memory_history
          a max_entries, or mb.record history=True, before the memory is allocated.
        </p>
      )}
      <div class="inspected">
        <Picture of={of} />
        <aside class="inspector" aria-label="Inspector">
          <Inspector of={of} />
        </aside>
      </div>
      <Waiting error={stacksError} hasContent={stacks !== null} />
      {stacks !== null && <FlamePanel of={of} stacks={stacks} before={of.before} />}
      {stacks === null && stacksError === null && <Skeleton heightPx={FLAME_PX} />}
      <HistoryNotes device={device} warns={false} />
    </>
  );
}

function Inspector({ of }: { readonly of: Blocks }) {
  const { state, view, actions, live, stacks, stacksError } = of;
  const { life, range } = state;
  if (life !== null) {
    return (
      <BlockDrawer
        view={view}
        stacks={stacks}
        life={life}
        moment={state.moment}
        open={of.open}
        litStack={state.stack}
        culprits={of.culprits}
        onLife={(other) => actions.set({ life: other })}
        onMoment={actions.pin}
        onStack={(stack) => actions.set({ stack })}
        links={
          <TextButton
            title="Where it lies in its segment, at this moment"
            press={() => {
              const moment = actions.shown().toString();
              view.showPage("segments", { part: null, moment });
            }}
          >
            Show in its segment
          </TextButton>
        }
      />
    );
  }
  if (range !== null) return <RangeDrawer of={of} range={range} />;
  return (
    <>
      {live !== null && <LedgerBar of={of} live={live} />}
      {stacks === null && stacksError === null && <Skeleton heightPx={HOLDERS_PX} />}
      {stacks !== null && (
        <HoldersTable of={of} stacks={stacks} heightPx={HOLDERS_PX} />
      )}
    </>
  );
}
