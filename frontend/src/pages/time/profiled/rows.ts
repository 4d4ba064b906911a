/** A long table of a trace: the rows sent are the first in the order that is chosen. */

import { useState } from "preact/hooks";
import type { Responses } from "../../../api/types.gen";
import type { Client, Query } from "../../../api/client";
import type { Live } from "../../../api/watch";
import { useProfiled } from "./trace_choice";

/** The most rows that a route sends. */
const MOST_ROWS = 2_000;

type TableRoute = "operators" | "kernels" | "operator_memory";

/** Whether there are more rows than were sent. */
function isCut(data: Responses[TableRoute]): boolean {
  const { name } = "rows" in data ? data.rows : data;
  return name.length < data.numRows;
}

/**
 * The page sorts what it has by itself. Only where that is not all of it, the server is
 * asked for the first rows in the order chosen (`sort`, in its own words).
 */
export function useProfiledRows<R extends TableRoute>(
  client: Client,
  route: R,
  query: Query,
  sort: string | null,
  pollMs: number,
): Live<Responses[R]> {
  const [cut, setCut] = useState(false);
  const asked = { ...query, top: MOST_ROWS, sort: cut ? sort : null };
  const live = useProfiled<R>(client, route, asked, pollMs);
  if (live.data !== null && isCut(live.data) !== cut) setCut(!cut);
  return live;
}
