/** Every page, file and picture says so where data are not real. */

export type Unreal = "simulated data" | "virtual GPU";

export interface Origin {
  /** Begins the names of files. */
  readonly run: string;
  /** null: a real training on a real device. */
  readonly unreal: Unreal | null;
}

interface SaysIt {
  readonly simulated: boolean;
  readonly virtualGpu: string;
}

export function unrealOf({ simulated, virtualGpu }: SaysIt): Unreal | null {
  if (simulated) return "simulated data";
  return virtualGpu === "" ? null : "virtual GPU";
}

export function originOf(run: SaysIt & { readonly name: string }): Origin {
  return { run: run.name, unreal: unrealOf(run) };
}

export function unrealWord(unreal: Unreal): string {
  return unreal === "simulated data" ? "simulated" : "virtual_gpu";
}

/** A picture is often seen without its page. */
export function figureTitle(label: string, { unreal }: Origin): string {
  return unreal === null ? label : `${label} (${unreal})`;
}

export function unrealNote(run: SaysIt): readonly [title: string, text: string] | null {
  switch (unrealOf(run)) {
    case null:
      return null;
    case "simulated data":
      return ["Simulated data", "No training produced these numbers."];
    case "virtual GPU":
      return [
        "Virtual GPU",
        `Recorded on a ${run.virtualGpu}: memory is what torch's allocator did; values and times are not real.`,
      ];
  }
}
