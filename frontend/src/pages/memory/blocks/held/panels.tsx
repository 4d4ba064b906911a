/** Below the picture: the flamegraph of what is live, and the table of who holds it. */

import type { ReadonlySignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import type { ByteUnit } from "../../../../base/bytes";
import type { Theme } from "../../../../base/tokens";
import type { CallStacks } from "../../../../model/stacks/call_stacks";
import { Icon } from "../../../../widgets/icon/icon";
import { Menu } from "../../../../widgets/menu/menu";
import { Skeleton } from "../../../../widgets/state/state";
import type { ViewProps } from "../../../shared/view_props";
import type { StackFile } from "../commands";
import { FlamePanel } from "./flame_panel";
import { flamePalette, Flames, type Held, type StackCategories } from "../state/held";
import { HoldersTable } from "./holders_table";
import type { AllocationsParams } from "../state/params";
import type { Search } from "../state/search";

const HOLDERS_PX = 320;

export interface HeldPanelsProps {
  readonly held: ReadonlySignal<Held | null>;
  /** At the marked moment; null: none is marked. */
  readonly before: Held | null;
  /** null until they are known. */
  readonly stacks: CallStacks | null;
  /** Whether they are still on their way. */
  readonly waits: boolean;
  /** By stack. */
  readonly categories: StackCategories;
  readonly search: Search;
  readonly params: AllocationsParams;
  readonly setParams: ViewProps["setParams"];
  /** Ways to save what is live. */
  readonly filesOf: (held: Held | null) => readonly StackFile[];
  readonly theme: Theme;
  readonly byteUnit: ByteUnit;
  readonly onStack: (stack: number | null) => void;
}

export function HeldPanels(props: HeldPanelsProps) {
  const { held, stacks, categories, search, params, theme, byteUnit } = props;
  const palette = useMemo(() => flamePalette(theme), [theme]);
  const flames = useMemo(
    () =>
      stacks === null
        ? null
        : new Flames(stacks, { choice: params.frames, categories, palette }),
    [stacks, params.frames, categories, palette],
  );
  if (stacks === null || flames === null) {
    return props.waits ? <Skeleton heightPx={HOLDERS_PX} /> : null;
  }
  return (
    <div class="allocations-held">
      <FlamePanel
        held={held}
        before={props.before}
        stacks={stacks}
        flames={flames}
        found={search.frames}
        params={params}
        setParams={props.setParams}
        theme={theme}
        byteUnit={byteUnit}
        heightPx={HOLDERS_PX}
      />
      <section aria-label="Top holders">
        <div class="panel-head">
          <h2>Top holders</h2>
          <span class="allocations-fill" />
          <ExportHeld held={held} filesOf={props.filesOf} />
        </div>
        <HoldersTable
          held={held}
          stacks={stacks}
          categories={categories}
          palette={palette}
          found={search.stacks}
          stack={params.stack}
          onStack={props.onStack}
          byteUnit={byteUnit}
          heightPx={HOLDERS_PX}
        />
      </section>
    </div>
  );
}

/** Apart from the panels, which are not drawn again when it gets known what is live. */
function ExportHeld({ held, filesOf }: Pick<HeldPanelsProps, "held" | "filesOf">) {
  const files = filesOf(held.value);
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
