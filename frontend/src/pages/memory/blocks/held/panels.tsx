/** What is live at the moment looked at: where it went, who holds it, and its stacks. */

import type { ReadonlySignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import type { AllocationLiveResponse, HistoryDevice } from "../../../../api/types.gen";
import type { ByteUnit } from "../../../../base/bytes";
import type { Theme } from "../../../../base/tokens";
import type { CallStacks } from "../../../../model/stacks/call_stacks";
import { Icon } from "../../../../widgets/icon/icon";
import { Menu } from "../../../../widgets/menu/menu";
import { Skeleton } from "../../../../widgets/state/state";
import type { ViewProps } from "../../../shared/view_props";
import { momentName } from "../../history/moment";
import type { StackFile } from "../commands";
import {
  flamePalette,
  Flames,
  type Held,
  type Lines,
  type StackCategories,
} from "../state/held";
import type { AllocationsParams } from "../state/params";
import type { Search } from "../state/search";
import { FlamePanel } from "./flame_panel";
import { HoldersTable } from "./holders_table";
import { LedgerBar } from "./ledger_bar";

const FLAME_PX = 320;

export interface HeldProps {
  readonly held: ReadonlySignal<Held | null>;
  /** null until they are known. */
  readonly stacks: CallStacks | null;
  /** Whether they are still on their way. */
  readonly waits: boolean;
  /** By stack. */
  readonly categories: StackCategories;
  readonly search: Search;
  readonly params: AllocationsParams;
  readonly theme: Theme;
  readonly byteUnit: ByteUnit;
}

/** While no block is chosen: the ledger, and the top holders. */
export function Holders(
  props: HeldProps & {
    /** The exact answer; null until it is known. */
    readonly live: AllocationLiveResponse | null;
    readonly device: HistoryDevice;
    readonly lines: Lines;
    /** Ways to save what is live. */
    readonly filesOf: (held: Held | null) => readonly StackFile[];
    readonly onStack: (stack: number | null) => void;
    readonly heightPx: number;
  },
) {
  const { live, device, stacks, theme, byteUnit, heightPx } = props;
  const palette = useMemo(() => flamePalette(theme), [theme]);
  return (
    <>
      {live !== null && (
        <LedgerBar
          live={live}
          name={momentName(device, live.moment)}
          capacityBytes={device.capacityBytes}
          stacks={stacks}
          lines={props.lines}
          theme={theme}
          byteUnit={byteUnit}
        />
      )}
      {stacks === null && props.waits && <Skeleton heightPx={heightPx} />}
      {stacks !== null && (
        <section aria-label="Top holders">
          <div class="panel-head">
            <h2>Top holders</h2>
            <ExportHeld held={props.held} filesOf={props.filesOf} />
          </div>
          <HoldersTable
            held={props.held}
            stacks={stacks}
            categories={props.categories}
            palette={palette}
            found={props.search.stacks}
            stack={props.params.stack}
            onStack={props.onStack}
            byteUnit={byteUnit}
            heightPx={heightPx}
          />
        </section>
      )}
    </>
  );
}

/** Below the picture: the flamegraph of what is live. */
export function HeldStacks(
  props: HeldProps & {
    /** At the marked moment; null: none is marked. */
    readonly before: Held | null;
    readonly setParams: ViewProps["setParams"];
  },
) {
  const { stacks, categories, params, theme } = props;
  const flames = useMemo(() => {
    const palette = flamePalette(theme);
    const { frames: choice } = params;
    return stacks === null ? null : new Flames(stacks, { choice, categories, palette });
  }, [stacks, params.frames, categories, theme]);
  if (stacks === null || flames === null) {
    return props.waits ? <Skeleton heightPx={FLAME_PX} /> : null;
  }
  return (
    <FlamePanel
      {...props}
      stacks={stacks}
      flames={flames}
      found={props.search.frames}
      heightPx={FLAME_PX}
    />
  );
}

/** Apart from the panels, which are not drawn again when it gets known what is live. */
function ExportHeld(props: {
  readonly held: ReadonlySignal<Held | null>;
  readonly filesOf: (held: Held | null) => readonly StackFile[];
}) {
  const files = props.filesOf(props.held.value);
  return (
    <Menu
      label="Export what is live"
      empty="Nothing is live here."
      items={files.map(({ id, label, save }) => ({ id, label, run: save }))}
    >
      <Icon name="download" />
    </Menu>
  );
}
