import type { StacksResponse } from "../../api/types.gen";

/** Memory whose stack was not recorded. */
export const NO_STACK = -1;
/** All stacks that were summed up. */
export const OTHER_STACKS = -2;

/** `StacksResponse.kind`. */
export const FRAME_KIND = { user: 0, library: 1, torch: 2, native: 3 } as const;

export type FrameChoice = "user" | "python" | "all";

/** A name for buttons, and its meaning. */
export const FRAME_WORDS: Readonly<Record<FrameChoice, readonly [string, string]>> = {
  user: ["My code", "Frames of your own files alone"],
  python: ["No torch", "Frames of your own files and of libraries, without torch’s"],
  all: ["All", "With torch’s own frames and native ones"],
};

export const FRAME_CHOICES: readonly FrameChoice[] = ["user", "python", "all"];

const HIGHEST_KIND: Readonly<Record<FrameChoice, number>> = {
  user: FRAME_KIND.user,
  python: FRAME_KIND.library,
  all: FRAME_KIND.native,
};

export interface Frame {
  readonly name: string;
  readonly filename: string;
  /** 0: not known. */
  readonly line: number;
  readonly kind: number;
}

const OPERATOR = /^at::_ops::(\w+?)(?:_\w+)?::(?:call|redispatch)/;
const NODE = /(?:^|::)(\w+Backward\w*|AccumulateGrad)::(?:apply|release_variables)/;
const ARGUMENTS = /[(<].*$/s;

/** A C++ function in short: its operator, its graph node, or its name. */
function nativeName(name: string): string {
  const operator = OPERATOR.exec(name)?.[1] ?? NODE.exec(name)?.[1];
  if (operator !== undefined) return operator;
  const plain = name.replaceAll("(anonymous namespace)::", "").replace(ARGUMENTS, "");
  const last = plain.slice(plain.lastIndexOf("::") + (plain.includes("::") ? 2 : 0));
  return last.trim() === "" ? name : last.trim();
}

export function baseName(path: string): string {
  return path.slice(Math.max(path.lastIndexOf("/"), path.lastIndexOf("\\")) + 1);
}

const PSEUDO: ReadonlyMap<number, string> = new Map([
  [NO_STACK, "no stack recorded"],
  [OTHER_STACKS, "other stacks, each small"],
]);

export class CallStacks {
  readonly numStacks: number;
  readonly numFrames: number;
  readonly #answer: StacksResponse;
  /** Tables need the same ones at every move of the pointer. */
  readonly #labels = new Map<number, string>();
  readonly #texts = new Map<number, string>();

  constructor(answer: StacksResponse) {
    this.#answer = answer;
    this.numStacks = Math.max(0, answer.start.length - 1);
    this.numFrames = answer.name.length;
  }

  get strings(): readonly string[] {
    return this.#answer.strings;
  }

  frame(frame: number): Frame {
    const { strings, name, filename, line, kind } = this.#answer;
    return {
      name: strings[name[frame] ?? -1] ?? "",
      filename: strings[filename[frame] ?? -1] ?? "",
      line: line[frame] ?? 0,
      kind: kind[frame] ?? FRAME_KIND.user,
    };
  }

  /** Rows of `strings` that describe a frame. */
  textsOf(frame: number): readonly [number, number] {
    const { name, filename } = this.#answer;
    return [name[frame] ?? -1, filename[frame] ?? -1];
  }

  /** Innermost first; empty where there is no stack. */
  of(stack: number): Int32Array {
    const { start, frame } = this.#answer;
    if (stack < 0) return frame.subarray(0, 0);
    return frame.subarray(start[stack] ?? 0, start[stack + 1] ?? start[stack] ?? 0);
  }

  /** Row of `strings` that names the innermost module; -1: none. */
  moduleText(stack: number): number {
    return this.#answer.module[stack] ?? -1;
  }

  module(stack: number): string {
    return this.strings[this.moduleText(stack)] ?? "";
  }

  /** The frame that stands for a stack; -1: none. */
  userFrame(stack: number): number {
    return stack < 0 ? -1 : (this.#answer.userFrame[stack] ?? -1);
  }

  /** `model.py:121 forward`: tables are searched by the place. */
  frameLabel(frame: number): string {
    return this.#label(frame, (name, place) => `${place} ${name}`);
  }

  /** `forward  model.py:121`: in boxes the name says more. */
  boxLabel(frame: number): string {
    return this.#label(frame, (name, place) => `${name}  ${place}`);
  }

  #label(frame: number, joined: (name: string, place: string) => string): string {
    const pseudo = PSEUDO.get(frame);
    if (pseudo !== undefined) return pseudo;
    const { name, filename, line, kind } = this.frame(frame);
    if (kind === FRAME_KIND.native) return nativeName(name);
    const file = baseName(filename);
    if (file === "") return name;
    return joined(name, line > 0 ? `${file}:${line}` : file);
  }

  stackLabel(stack: number): string {
    const cachedLabel = PSEUDO.get(stack) ?? this.#labels.get(stack);
    if (cachedLabel !== undefined) return cachedLabel;
    const frame = this.userFrame(stack);
    const label = this.frameLabel(frame >= 0 ? frame : this.#telling(stack));
    this.#labels.set(stack, label);
    return label;
  }

  /** `model.py:121`. */
  stackPlace(stack: number): string {
    const frame = this.userFrame(stack);
    if (frame < 0) return this.stackLabel(stack);
    const { filename, line } = this.frame(frame);
    return `${baseName(filename)}:${line}`;
  }

  /**
   * Root first. A stack without such frames shows its `userFrame`: no memory is left
   * out.
   */
  path(stack: number, choice: FrameChoice): Int32Array {
    if (stack < 0) return Int32Array.of(stack);
    const { kind } = this.#answer;
    const most = HIGHEST_KIND[choice];
    const kept = this.of(stack)
      .filter((frame) => (kind[frame] ?? 0) <= most)
      .reverse();
    if (kept.length > 0) return kept;
    const standing = this.userFrame(stack);
    return Int32Array.of(standing >= 0 ? standing : this.#telling(stack));
  }

  /** Without Python frames: the frame that says most; `NO_STACK`: none does. */
  #telling(stack: number): number {
    const frames = this.of(stack);
    const named = (pattern: RegExp): number | undefined =>
      frames.find((row) => pattern.test(this.frame(row).name));
    return named(NODE) ?? named(OPERATOR) ?? frames[0] ?? NO_STACK;
  }

  /** Innermost first, as Python's tracebacks name places. */
  text(stack: number): string {
    const cachedText = this.#texts.get(stack);
    if (cachedText !== undefined) return cachedText;
    const lines = Array.from(this.of(stack), (row) => {
      const { name, filename, line } = this.frame(row);
      return line > 0 ? `${filename}:${line} in ${name}` : `${filename} ${name}`.trim();
    });
    this.#texts.set(stack, lines.join("\n"));
    return lines.join("\n");
  }
}
