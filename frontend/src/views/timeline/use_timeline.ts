/** The answers of `/timeline` for what is in sight. */

import type { TimelineResponse } from "../../api/types.gen";
import type { XRange } from "../../widgets/line_chart/types";
import { useTwoAnswers, type TwoAnswers } from "../use_two_answers";
import type { ViewProps } from "../view_props";
import type { TimelineParams } from "./params";

export function useTimeline(
  props: ViewProps,
  params: TimelineParams,
  shown: XRange | null,
  settled: XRange | null,
  px: number,
): TwoAnswers<TimelineResponse> {
  const { client, run, ranks, pollMs } = props;
  const subject = {
    run: run.id,
    rank: ranks.rank,
    ranks: ranks.filter,
    pinned: ranks.pinned.join(","),
    series: params.series,
    x: params.x,
    phase: params.phase,
  };
  return useTwoAnswers(client, "timeline", subject, shown, settled, px, pollMs);
}
