/** What the time of profiled steps goes to: words, help and colours of each role. */

import type { ProfileRole } from "../api/types.gen";
import type { Theme } from "../base/tokens";
import { partColour } from "../render/palette";

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
  other: "None of the others: code outside of operators.",
};

/** Parts of steps have colours; a role has that of the part it resembles. */
const COLOUR_OF: Readonly<Record<ProfileRole, string>> = {
  kernel: "forward",
  memcpy: "backward",
  memset: "optimizer",
  communication: "communication",
  runtime: "checkpoint",
  dataloader: "dataloader",
  cpu_exec: "zero_grad",
  other: "other",
};

export function roleColour(theme: Theme, role: ProfileRole): string {
  return partColour(theme, COLOUR_OF[role]);
}
