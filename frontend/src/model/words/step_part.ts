import { sentenceCase } from "./column_label";

const LABELS: ReadonlyMap<string, string> = new Map([
  ["zero_grad", "zero_grad"],
  ["step", "Step time"],
  ["eval", "Evaluation"],
]);

const HELP: ReadonlyMap<string, string> = new Map([
  ["step", "From the end of the step before to the end of this one: rec.step ends it"],
  ["dataloader", "Waiting for the next batch"],
  ["forward", "The model’s forward"],
  ["backward", "Backward, up to where it returns"],
  ["optimizer", "The optimizer’s step"],
  ["zero_grad", "Setting gradients to zero, or to None"],
  ["checkpoint", "Saving or loading checkpoints"],
  ["eval", "Evaluation between steps of training"],
  ["communication", "Calls of collectives, and waiting for them"],
  ["other", "Step time − all other parts: code that no part covers"],
]);

const HOST_TIME =
  "Time of the training thread; where parts lie in one another it counts for the innermost. With a device that is what launching and waiting took, not what ran on it meanwhile.";

/** What a part is, and what its time excludes. */
export function partHelp(name: string): string {
  const help = HELP.get(name) ?? partLabel(name);
  return name === "step" || name === "other" ? `${help}.` : `${help}. ${HOST_TIME}`;
}

/** Falls back to the name, for parts added later. */
export function partLabel(name: string): string {
  return LABELS.get(name) ?? sentenceCase(name);
}
