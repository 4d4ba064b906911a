/** What the Allocations page can do by key, palette and the shell's export menu. */

import type { Command } from "../../base/commands";
import { panStep, zoomStep } from "../../render/gestures";
import type { BlockAxis } from "../../widgets/block_stack/axis";
import type { BlockController } from "../../widgets/block_stack/controller";
import { nextMark, type DrawnMarks } from "../../widgets/block_stack/marks";
import { stepEvents } from "../../widgets/block_stack/steps";
import { exportCommands } from "../../widgets/export/export_commands";
import { ALL_FORMATS, type ExportSource } from "../../widgets/export/source";

/** What buttons and keys do alike. */
export interface AllocationActions {
  readonly toPeak: () => void;
  readonly toOom: () => void;
  readonly mark: () => void;
  /** This moment against the marked one, or another history. */
  readonly compare: () => void;
}

/** Asked when a command runs, so that it acts on what is shown then. */
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

const GROUP = "Allocations";

export function allocationCommands(now: () => AllocationsNow): readonly Command[] {
  const command = (
    id: string,
    label: string,
    run: (now: AllocationsNow) => void,
    key?: string,
  ): Command => ({
    id: `allocations.${id}`,
    label,
    group: GROUP,
    ...(key === undefined ? {} : { key }),
    run: () => run(now()),
  });
  const view = (
    id: string,
    label: string,
    move: (controller: BlockController) => void,
    key?: string,
  ): Command =>
    command(
      id,
      label,
      ({ controller }) => {
        if (controller !== null) move(controller);
      },
      key,
    );
  const zoom = (axes: "x" | "y", sign: number) => (controller: BlockController) =>
    controller.setView(zoomStep(controller.view, controller.limits, sign, axes));
  const pan = (sign: number) => (controller: BlockController) =>
    controller.setView(panStep(controller.view, controller.limits, sign));
  const toMark =
    (side: -1 | 1) =>
    ({ marks, moment, pin, say }: AllocationsNow): void => {
      const next = nextMark(marks, moment, side);
      if (next !== null) pin(next);
      else say(side > 0 ? "No later mark" : "No earlier mark");
    };
  const step =
    (by: number) =>
    ({ controller, axis }: AllocationsNow): void => {
      if (controller !== null) stepEvents(controller, axis, by);
    };
  return [
    command("find", "Find blocks", ({ find }) => find(), "/"),
    view("in", "Zoom in", zoom("x", -1), "w"),
    view("out", "Zoom out", zoom("x", 1), "s"),
    view("taller", "Zoom in on the bytes", zoom("y", -1)),
    view("flatter", "Zoom out of the bytes", zoom("y", 1)),
    view(
      "height",
      "Fit the height to what is in sight",
      (controller) => controller.fitHeight(),
      "h",
    ),
    view("left", "Move left", pan(-1), "a"),
    view("right", "Move right", pan(1), "d"),
    view("fit", "Show everything", (controller) => controller.fit(), "f"),
    command(
      "peak",
      "Pin the peak of this history",
      ({ actions }) => actions.toPeak(),
      "p",
    ),
    command("oom", "Pin the next out-of-memory error", ({ actions }) =>
      actions.toOom(),
    ),
    command("before", "Pin the previous mark", toMark(-1), "["),
    command("after", "Pin the next mark", toMark(1), "]"),
    command("earlier", "Cursor one event back", step(-1), "ArrowLeft"),
    command("later", "Cursor one event on", step(1), "ArrowRight"),
    command(
      "pin",
      "Pin the moment at the cursor (Enter on the picture)",
      ({ moment, pin }) => pin(moment),
    ),
    command(
      "mark",
      "Mark the moment, for differences",
      ({ actions }) => actions.mark(),
      "m",
    ),
    command("compare", "Compare this moment with another", ({ actions }) =>
      actions.compare(),
    ),
    command("clear", "Give up what was chosen", ({ clear }) => clear(), "Escape"),
    ...exportCommands({
      view: "allocations",
      subject: "picture of allocations",
      formats: ALL_FORMATS,
      source: () => now().source,
      say: (sentence) => now().say(sentence),
    }),
    ...STACK_FILES.map(({ id, label }) => ({
      id: `allocations.export.${id}`,
      label,
      group: "Export",
      run: (): void => {
        const { files, say } = now();
        const file = files.find((one) => one.id === id);
        if (file === undefined) say("Nothing is known of what is live yet");
        else file.save();
      },
    })),
  ];
}
