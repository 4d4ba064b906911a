import type { ViewProps } from "../../shared/view_props";
import { ProfiledPage } from "../profiled/profiled_page";

const BY = {
  name: ["Kernel", "One row per kernel"],
  properties: [
    "Kernel, operator and launch",
    "One row per kernel, launching operator, grid, block, registers and shared memory",
  ],
} as const;

export function KernelsView(view: ViewProps) {
  return (
    <ProfiledPage
      view={view}
      route="kernels"
      by={BY}
      search="Search kernels and operators"
    />
  );
}
