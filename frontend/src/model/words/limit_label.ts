/** What bounds the memory, said with the same words on every page. */

import type { CapacityKind } from "../../api/types.gen";

export const LIMIT_WORDS: Readonly<Record<CapacityKind, string>> = {
  device: "device capacity",
  cgroup_limit: "memory limit",
  host_memory: "host memory",
  none: "",
};
