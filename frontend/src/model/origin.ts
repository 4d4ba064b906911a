/** Where exported data come from: every file and picture says it. */

export interface Origin {
  /** The run's name; begins the names of files. */
  readonly run: string;
  /** No training produced the data. */
  readonly simulated: boolean;
}

export function originOf(run: {
  readonly name: string;
  readonly simulated: boolean;
}): Origin {
  return { run: run.name, simulated: run.simulated };
}

/** A picture's heading; a picture is often seen without its page. */
export function figureTitle(label: string, { simulated }: Origin): string {
  return simulated ? `${label} (simulated data)` : label;
}
