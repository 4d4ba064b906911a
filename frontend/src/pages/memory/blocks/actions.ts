import { commandsOf, type Command } from "../../../base/commands";
import { panStep, zoomStep } from "../../../render/gestures";
import { stepEvents } from "../../../widgets/block_stack/block_stack";
import type { BlockStage } from "../../../widgets/block_stack/stage";
import type { DrawnMarks } from "../../../widgets/block_stack/marks";
import { writeState } from "../../shared/page_state";
import type { ViewProps } from "../../shared/view_props";
import { momentActions, momentWords, type MomentPlace } from "../history/moment";
import { STACK_FILES, type StackFile } from "./held/files";
import { BLOCKS, type BlocksState } from "./state";

export interface ActionsOf {
  readonly view: Pick<ViewProps, "say" | "setParams" | "showPage">;
  readonly state: BlocksState;
  readonly momentPlace: MomentPlace;
  readonly stage: BlockStage;
  readonly marks: DrawnMarks;
  /** The moment shown without a pointer. */
  readonly anchor: number;
}

type BlockActions = ReturnType<typeof blockActions>;

export function blockActions(of: ActionsOf) {
  const { view, state, momentPlace, stage, marks, anchor } = of;
  const set = (changes: Partial<BlocksState>): void =>
    view.setParams(writeState(BLOCKS, changes));
  const pin = (moment: number): void => {
    view.setParams(momentWords(moment, momentPlace));
    stage.reveal(moment);
    // The next key starts from the pinned moment.
    stage.clearCursor();
  };
  /** Under the pointer, else the anchor. */
  const shown = (): number => stage.hovered.peek()?.moment ?? anchor;
  return {
    set,
    pin,
    shown,
    ...momentActions({
      view,
      momentPlace,
      marks,
      shown,
      level: "active",
      mark: state.mark,
      go: pin,
      pinned: state.moment ?? -2,
    }),
    mark: () => {
      const again = shown() === state.mark;
      set({ mark: again ? null : shown(), flame: again ? "tree" : "difference" });
    },
    clear: () => {
      if (state.life !== null) set({ life: null });
      else if (state.range !== null) set({ range: null });
      else if (state.stack !== null) set({ stack: null });
      else if (state.only !== "") set({ only: "" });
      else if (state.find !== "") set({ find: "" });
      else if (state.moment !== null) set({ moment: null });
      else if (state.mark !== null) set({ mark: null, flame: "tree" });
      stage.clearCursor();
    },
  };
}

export function blockCommands(
  { stage, view: { say } }: Pick<ActionsOf, "stage" | "view">,
  actions: BlockActions,
  files: readonly StackFile[],
): readonly Command[] {
  const zoom = (axes: "x" | "y", sign: number) => () =>
    stage.setView(zoomStep(stage.view, stage.limits, sign, axes));
  const pan = (sign: number) => () =>
    stage.setView(panStep(stage.view, stage.limits, sign));
  const step = (by: number) => () => void stepEvents(stage, by);
  const save = (id: string) => () => {
    const file = files.find((item) => item.id === id);
    if (file === undefined) say("Live memory is not loaded yet");
    else file.run();
  };
  const { toMark } = actions;
  return [
    ...commandsOf("blocks", "Blocks", [
      ["in", "Zoom in", zoom("x", -1), "w"],
      ["out", "Zoom out", zoom("x", 1), "s"],
      ["taller", "Zoom in on the bytes", zoom("y", -1)],
      ["flatter", "Zoom out of the bytes", zoom("y", 1)],
      ["height", "Fit the height to the visible part", () => stage.fitHeight(), "h"],
      ["left", "Move left", pan(-1), "a"],
      ["right", "Move right", pan(1), "d"],
      ["fit", "Show everything", () => stage.fit(), "f"],
      ["peak", "Pin the peak of this history", actions.toPeak, "p"],
      ["oom", "Pin the next out-of-memory error", actions.toOom],
      ["before", "Pin the previous mark", () => toMark(-1), "["],
      ["after", "Pin the next mark", () => toMark(1), "]"],
      ["earlier", "Cursor one event back", step(-1), "ArrowLeft"],
      ["later", "Cursor one event on", step(1), "ArrowRight"],
      [
        "pin",
        "Pin the moment at the cursor (Enter on the picture)",
        () => actions.pin(actions.shown()),
      ],
      ["mark", "Mark the moment, for differences", actions.mark, "m"],
      ["compare", "Compare this moment with another", actions.compare],
      ["clear", "Clear selection", actions.clear, "Escape"],
    ]),
    ...commandsOf(
      "allocations.export",
      "Export",
      STACK_FILES.map(([id, label]) => [id, label, save(id)] as const),
    ),
  ];
}
