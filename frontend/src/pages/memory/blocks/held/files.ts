import type { CallStacks, FrameChoice } from "../../../../model/stacks/call_stacks";
import { foldedStacks, speedscope } from "../../../../model/stacks/files";
import type { Table } from "../../../../model/table";
import type { Origin } from "../../../../model/words/origin";
import { atMoment } from "../../../../widgets/block_stack/axis";
import { download } from "../../../../widgets/export/download";
import { exportCsv, fileStem } from "../../../../widgets/export/source";
import type { MenuItem } from "../../../../widgets/menu/menu";
import type { LiveStacks } from "./held";

export type StackFile = MenuItem;

export const STACK_FILES = [
  ["folded", "Live stacks as folded text"],
  ["speedscope", "Live stacks for speedscope"],
  ["csv", "Live stacks as CSV"],
] as const;

export function heldTable(
  { stack, stackBytes, stackBlocks }: LiveStacks,
  stacks: CallStacks,
): Table {
  const words = (of: (stack: number) => string): readonly string[] =>
    Array.from(stack, of);
  const unknown = new Float64Array(stack.length).fill(NaN);
  return {
    numRows: stack.length,
    columns: [
      { name: "bytes", values: stackBytes },
      { name: "blocks", values: stackBlocks ?? unknown },
      { name: "allocated_at", values: words((one) => stacks.stackLabel(one)) },
      { name: "module", values: words((one) => stacks.module(one)) },
      { name: "stack", values: words((one) => stacks.text(one)) },
    ],
  };
}

export function stackFiles(
  held: LiveStacks,
  stacks: CallStacks,
  choice: FrameChoice,
  origin: Origin,
  label: string,
): readonly StackFile[] {
  const name = `${label} live ${atMoment(held.moment)}`;
  const table = (): Table => heldTable(held, stacks);
  const source = { origin, name, table, about: () => ({}) };
  const stem = fileStem(source);
  const save = {
    folded: () => download(stem, "txt", foldedStacks(stacks, held, choice)),
    speedscope: () => {
      const text = speedscope(stacks, held, choice, stem);
      download(`${stem} speedscope`, "json", text);
    },
    csv: () => download(stem, "csv", exportCsv(source)),
  };
  return STACK_FILES.map(([id, words]) => ({ id, label: words, run: save[id] }));
}
