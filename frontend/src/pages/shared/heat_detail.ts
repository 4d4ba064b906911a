/** What a heatmap asks for beside its coarse answer. Pure. */

import type { Query } from "../../api/client";
import { formatRankSet } from "../../base/rank_set";
import type { HeatmapNeed } from "../../widgets/heatmap/types";

/** null while the coarse answer is sharp enough: everything is in sight. */
export function detailQuery(subject: Query, need: HeatmapNeed | null): Query | null {
  if (need === null || (need.steps === null && need.ranks === null)) return null;
  return {
    ...subject,
    x0: need.steps?.low ?? null,
    x1: need.steps?.high ?? null,
    px: need.px,
    rows: need.rows,
    ...(need.ranks === null ? {} : { ranks: formatRankSet(need.ranks) }),
  };
}
