/** What is live at a moment, as files: folded text, speedscope, a table. */

import type { Origin } from "../../../../model/words/origin";
import type { CallStacks, FrameChoice } from "../../../../model/stacks/call_stacks";
import { foldedStacks, speedscope } from "../../../../model/stacks/files";
import type { Table } from "../../../../model/table";
import { atMoment } from "../../../../widgets/block_stack/axis";
import { downloadText } from "../../../../widgets/export/download";
import { exportCsv, fileStem } from "../../../../widgets/export/source";
import { STACK_FILES, type StackFile } from "../commands";
import type { Held } from "../state/held";

export function heldTable(held: Held, stacks: CallStacks): Table {
  const words = (of: (stack: number) => string): readonly string[] =>
    Array.from(held.stack, of);
  return {
    numRows: held.stack.length,
    columns: [
      { name: "bytes", values: held.bytes },
      {
        name: "blocks",
        values: held.blocks ?? new Float64Array(held.stack.length).fill(NaN),
      },
      { name: "allocated_at", values: words((stack) => stacks.stackLabel(stack)) },
      { name: "module", values: words((stack) => stacks.module(stack)) },
      { name: "stack", values: words((stack) => stacks.text(stack)) },
    ],
  };
}

export function stackFiles(
  held: Held,
  stacks: CallStacks,
  choice: FrameChoice,
  origin: Origin,
  label: string,
): readonly StackFile[] {
  const name = `${label} live ${atMoment(held.moment)}`;
  const source = {
    origin,
    name,
    table: () => heldTable(held, stacks),
    about: () => ({}),
  };
  const stem = fileStem(source);
  const save: Readonly<Record<string, () => void>> = {
    folded: () => downloadText(stem, "txt", foldedStacks(stacks, held, choice)),
    speedscope: () =>
      downloadText(
        `${stem} speedscope`,
        "json",
        speedscope(stacks, held, choice, stem),
      ),
    csv: () => downloadText(stem, "csv", exportCsv(source)),
  };
  return STACK_FILES.map(({ id, label: words }) => ({
    id,
    label: words,
    save: () => save[id]?.(),
  }));
}
