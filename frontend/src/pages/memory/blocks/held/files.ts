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
  const textsOf = (of: (stack: number) => string): readonly string[] =>
    Array.from(stack, of);
  const unknown = new Float64Array(stack.length).fill(NaN);
  return {
    numRows: stack.length,
    columns: [
      { name: "bytes", values: stackBytes },
      { name: "blocks", values: stackBlocks ?? unknown },
      { name: "allocated_at", values: textsOf((id) => stacks.stackLabel(id)) },
      { name: "module", values: textsOf((id) => stacks.module(id)) },
      { name: "stack", values: textsOf((id) => stacks.text(id)) },
    ],
  };
}

export function stackFiles(
  live: LiveStacks,
  stacks: CallStacks,
  choice: FrameChoice,
  origin: Origin,
  label: string,
): readonly StackFile[] {
  const name = `${label} live ${atMoment(live.moment)}`;
  const table = (): Table => heldTable(live, stacks);
  const source = { origin, name, table, about: () => ({}) };
  const stem = fileStem(source);
  const save = {
    folded: () => download(stem, "txt", foldedStacks(stacks, live, choice)),
    speedscope: () => {
      const text = speedscope(stacks, live, choice, stem);
      download(`${stem} speedscope`, "json", text);
    },
    csv: () => download(stem, "csv", exportCsv(source)),
  };
  return STACK_FILES.map(([id, fileLabel]) => ({
    id,
    label: fileLabel,
    run: save[id],
  }));
}
