/** What the Allocations page can do by key, palette and the shell's export menu. */

import { commandsOf, type Command } from "../../../base/commands";
import { panStep, zoomStep } from "../../../render/gestures";
import type { BlockAxis } from "../../../widgets/block_stack/axis";
import type { BlockController } from "../../../widgets/block_stack/controller";
import { nextMark, type DrawnMarks } from "../../../widgets/block_stack/marks";
import { stepEvents } from "../../../widgets/block_stack/steps";
import { exportCommands } from "../../../widgets/export/export_commands";
import { ALL_FORMATS, type ExportSource } from "../../../widgets/export/source";

/** What buttons and keys do alike. */
export interface AllocationActions {
  readonly toPeak: () => void;
  readonly toOom: () => void;
  readonly mark: () => void;
  /** This moment against the marked one, or another history. */
  readonly compare: () => void;
}

export interface AllocationsNow {
  readonly controller: BlockController | null;
  readonly axis: BlockAxis;
  readonly marks: DrawnMarks;
  /** The moment at the cursor, else the pinned one, else the one shown first. */
  readonly moment: number;
  readonly actions: AllocationActions;
  readonly pin: (moment: number) => void;
  /** Gives up what was chosen last; false where nothing was. */
  readonly clear: () => void;
  readonly find: () => void;
  readonly source: ExportSource | null;
  readonly files: readonly StackFile[];
  readonly say: (sentence: string) => void;
}

/** What is live, as a file for another tool. */
export interface StackFile {
  readonly id: string;
  readonly label: string;
  readonly save: () => void;
}

export const STACK_FILES: readonly { readonly id: string; readonly label: string }[] = [
  { id: "folded", label: "Live stacks as folded text" },
  { id: "speedscope", label: "Live stacks for speedscope" },
  { id: "csv", label: "Live stacks as CSV" },
];

export function allocationCommands(now: AllocationsNow): readonly Command[] {
  const { controller, axis, marks, moment, actions, pin, say } = now;
  const view = (move: (of: BlockController) => void) => () => {
    if (controller !== null) move(controller);
  };
  const zoom = (axes: "x" | "y", sign: number) =>
    view((of) => of.setView(zoomStep(of.view, of.limits, sign, axes)));
  const pan = (sign: number) =>
    view((of) => of.setView(panStep(of.view, of.limits, sign)));
  const toMark = (side: -1 | 1) => () => {
    const next = nextMark(marks, moment, side);
    if (next !== null) pin(next);
    else say(side > 0 ? "No later mark" : "No earlier mark");
  };
  const step = (by: number) => view((of) => stepEvents(of, axis, by));
  const save = (id: string) => () => {
    const file = now.files.find((one) => one.id === id);
    if (file === undefined) say("Nothing is known of what is live yet");
    else file.save();
  };
  const toHeight = view((of) => of.fitHeight());
  const pinCursor = (): void => pin(moment);
  return [
    ...commandsOf("blocks", "Blocks", [
      ["find", "Find blocks", now.find, "/"],
      ["in", "Zoom in", zoom("x", -1), "w"],
      ["out", "Zoom out", zoom("x", 1), "s"],
      ["taller", "Zoom in on the bytes", zoom("y", -1)],
      ["flatter", "Zoom out of the bytes", zoom("y", 1)],
      ["height", "Fit the height to what is in sight", toHeight, "h"],
      ["left", "Move left", pan(-1), "a"],
      ["right", "Move right", pan(1), "d"],
      ["fit", "Show everything", view((of) => of.fit()), "f"],
      ["peak", "Pin the peak of this history", actions.toPeak, "p"],
      ["oom", "Pin the next out-of-memory error", actions.toOom],
      ["before", "Pin the previous mark", toMark(-1), "["],
      ["after", "Pin the next mark", toMark(1), "]"],
      ["earlier", "Cursor one event back", step(-1), "ArrowLeft"],
      ["later", "Cursor one event on", step(1), "ArrowRight"],
      ["pin", "Pin the moment at the cursor (Enter on the picture)", pinCursor],
      ["mark", "Mark the moment, for differences", actions.mark, "m"],
      ["compare", "Compare this moment with another", actions.compare],
      ["clear", "Give up what was chosen", now.clear, "Escape"],
    ]),
    ...exportCommands({
      view: "blocks",
      subject: "picture of allocations",
      formats: ALL_FORMATS,
      source: () => now.source,
      say,
    }),
    ...commandsOf(
      "allocations.export",
      "Export",
      STACK_FILES.map(({ id, label }) => [id, label, save(id)] as const),
    ),
  ];
}
