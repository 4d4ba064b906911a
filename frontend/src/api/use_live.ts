import { useEffect, useRef, useState } from "preact/hooks";
import type { Client, Query, Route } from "./client";
import { pagePulse } from "./pulse";
import type { Responses } from "./types.gen";
import { NOTHING_YET, Watch, type Live } from "./watch";

/** `query` null: no request; `pollMs` Infinity: one request. */
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
    // `words` stand for `asked`, a new object at each render.
  }, [client, route, words, pollMs]);
  return live;
}
