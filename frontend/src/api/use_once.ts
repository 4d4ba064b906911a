/** For what does not change: repeated only after a failure. */

import { useEffect, useState } from "preact/hooks";
import type { Client, Query, Route } from "./client";
import type { Responses } from "./types.gen";
import { useLive } from "./use_live";
import type { Live } from "./watch";

/** The server may have released a history and be opening it again. */
const AGAIN_MS = 1_500;

export function useOnce<R extends Route>(
  client: Client,
  route: R,
  query: Query | null,
): Live<Responses[R]> {
  const [failed, setFailed] = useState(false);
  const live = useLive(client, route, query, failed ? AGAIN_MS : Infinity);
  useEffect(() => setFailed(live.error !== null), [live.error]);
  return live;
}
