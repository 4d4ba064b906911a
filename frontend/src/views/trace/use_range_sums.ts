/** What a range of time holds, summed up by name. */

import type { Client } from "../../api/client";
import type { TraceRangeResponse } from "../../api/types.gen";
import { useOnce } from "../../api/use_once";
import type { Stretch } from "./params";

/** `tracks` as the routes read them; of none that are chosen, all that are shown. */
export function useRangeSums(
  client: Client,
  run: string,
  range: Stretch | null,
  tracks: string,
  shownTracks: string,
): TraceRangeResponse | null {
  return useOnce(
    client,
    "trace_range",
    range === null
      ? null
      : {
          run,
          tracks: tracks === "" ? shownTracks : tracks,
          t0: range.low.toString(),
          t1: range.high.toString(),
        },
  ).data;
}
