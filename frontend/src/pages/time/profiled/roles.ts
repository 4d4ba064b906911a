import type { ProfileResponse, ProfileRole } from "../../../api/types.gen";
import type { Theme } from "../../../base/tokens";
import { familyColour, type WorkKind } from "./family_colours";

export const ROLE_WORDS: Readonly<Record<ProfileRole, string>> = {
  kernel: "kernels",
  memcpy: "copies",
  memset: "fills",
  communication: "communication",
  runtime: "runtime calls",
  dataloader: "dataloader",
  cpu_exec: "host operators",
  other: "other",
};

export const ROLE_HELP: Readonly<Record<ProfileRole, string>> = {
  kernel: "At least one kernel ran on a device, other than those of collectives.",
  memcpy: "A copy ran on a device, and no kernel.",
  memset: "A device filled memory, and did nothing else.",
  communication: "A collective ran and nothing hid it: exposed communication.",
  runtime: "The host called the device's runtime; the device did nothing.",
  dataloader: "The step waited inside the dataloader's __next__.",
  cpu_exec: "Operators and annotations ran on the host; no device did anything.",
  other: "None of the others: code outside operators.",
};

/** As the role's slices on Trace. */
const FAMILY_OF: Readonly<Record<ProfileRole, WorkKind>> = {
  kernel: "kernel",
  memcpy: "memory",
  memset: "fill",
  communication: "communication",
  runtime: "runtime",
  dataloader: "dataloader",
  cpu_exec: "operator",
  other: "other",
};

export function roleColour(theme: Theme, role: ProfileRole): string {
  return familyColour(theme, FAMILY_OF[role]);
}

export function meanStepMs({ durationMs }: Pick<ProfileResponse, "durationMs">) {
  return durationMs.reduce((sum, one) => sum + one, 0) / Math.max(durationMs.length, 1);
}
