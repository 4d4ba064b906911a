import { FRAME_KIND, type CallStacks, type FrameChoice } from "./call_stacks";

interface StackBytes {
  readonly stack: ArrayLike<number>;
  readonly stackBytes: ArrayLike<number>;
}

/** No line breaks, and none of what separates frames. */
function folded(text: string): string {
  return text.replaceAll(/[\r\n]+/g, " ").replaceAll(";", ",");
}

interface Sample {
  readonly path: Int32Array;
  readonly bytes: number;
}

function samples(
  stacks: CallStacks,
  { stack, stackBytes }: StackBytes,
  choice: FrameChoice,
): readonly Sample[] {
  return Array.from(stackBytes, (own, i) => {
    return { path: stacks.path(stack[i] ?? -1, choice), bytes: own };
  }).filter((sample) => sample.bytes > 0);
}

/** `root;caller;callee 1024` per line, for flamegraph.pl. */
export function foldedStacks(
  stacks: CallStacks,
  live: StackBytes,
  choice: FrameChoice,
): string {
  const sums = new Map<string, number>();
  for (const { path, bytes } of samples(stacks, live, choice)) {
    const line = Array.from(path, (frame) => folded(stacks.frameLabel(frame))).join(
      ";",
    );
    sums.set(line, (sums.get(line) ?? 0) + bytes);
  }
  return Array.from(sums, ([line, bytes]) => `${line} ${bytes}\n`).join("");
}

interface SpeedscopeFrame {
  readonly name: string;
  readonly file?: string;
  readonly line?: number;
}

/** A sampled profile whose weights are bytes. */
export function speedscope(
  stacks: CallStacks,
  live: StackBytes,
  choice: FrameChoice,
  name: string,
): string {
  const rows = new Map<number, number>();
  const frames: SpeedscopeFrame[] = [];
  const rowOf = (frame: number): number => {
    const earlierRow = rows.get(frame);
    if (earlierRow !== undefined) return earlierRow;
    const row = frames.length;
    rows.set(frame, row);
    frames.push(described(stacks, frame));
    return row;
  };
  const all = samples(stacks, live, choice);
  const profile = {
    type: "sampled",
    name,
    unit: "bytes",
    startValue: 0,
    endValue: all.reduce((sum, { bytes }) => sum + bytes, 0),
    samples: all.map(({ path }) => Array.from(path, rowOf)),
    weights: all.map(({ bytes }) => bytes),
  };
  return `${JSON.stringify({
    $schema: "https://www.speedscope.app/file-format-schema.json",
    name,
    exporter: "MemBoard",
    activeProfileIndex: 0,
    shared: { frames },
    profiles: [profile],
  })}\n`;
}

function described(stacks: CallStacks, row: number): SpeedscopeFrame {
  if (row < 0) return { name: stacks.frameLabel(row) };
  const { name, filename, line, kind } = stacks.frame(row);
  if (filename === "" || kind === FRAME_KIND.native) return { name };
  return line > 0 ? { name, file: filename, line } : { name, file: filename };
}
