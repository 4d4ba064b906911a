/** The hook by which components read the server; see `watch.ts` for its manners. */

import { useEffect, useRef, useState } from "preact/hooks";
import type { Client, Query, Route } from "./client";
import { pagePulse } from "./pulse";
import type { Responses } from "./types.gen";
import { NOTHING_YET, Watch, type Live } from "./watch";

/** `query` null asks for nothing; `pollMs` Infinity asks once. */
export function useLive<R extends Route>(
  client: Client,
  route: R,
  query: Query | null,
  pollMs: number,
): Live<Responses[R]> {
  const [live, setLive] = useState<Live<Responses[R]>>(NOTHING_YET);
  const watch = useRef<Watch<R> | null>(null);
  useEffect(() => {
    const created = new Watch(client, route, setLive, pagePulse);
    watch.current = created;
    return () => created.close();
  }, [client, route]);
  const asked = query === null ? null : { ...query, unit: client.unit };
  const words = JSON.stringify(asked);
  useEffect(() => {
    watch.current?.ask(asked, pollMs);
    // `words` stand for `asked`, which is a new object at each drawing.
  }, [client, route, words, pollMs]);
  return live;
}
