import { useEffect, useRef, useState } from "preact/hooks";
import type { Client, Query, Route } from "../client";
import { type Live, NOTHING_YET, pagePulse, Watch } from "./watch";
import type { Responses } from "../types.gen";

/** Answers about what is still being opened or read are requested again this soon. */
const READING_POLL_MS = 700;

function isReading(data: object | null): boolean {
  const { stillReading, numOpening, state, choice, sources } = (data ?? {}) as {
    readonly stillReading?: boolean;
    readonly numOpening?: number;
    readonly state?: string;
    readonly choice?: { readonly state: string };
    readonly sources?: readonly { readonly state?: string }[];
  };
  const states = [
    state,
    choice?.state,
    ...(sources ?? []).map((source) => source.state),
  ];
  return stillReading === true || (numOpening ?? 0) > 0 || states.includes("opening");
}

/** `query` null: no request; without `pollMs` what does not change is requested once. */
export function useLive<R extends Route>(
  client: Client,
  route: R,
  query: Query | null,
  pollMs = Infinity,
): Live<Responses[R]> {
  const [live, setLive] = useState<Live<Responses[R]>>(NOTHING_YET);
  const watch = useRef<Watch<R> | null>(null);
  useEffect(() => {
    const created = new Watch(client, route, setLive, pagePulse);
    watch.current = created;
    return () => created.close();
  }, [client, route]);
  const asked = query === null ? null : { ...query, unit: client.unit };
  const stamp = JSON.stringify(asked);
  const pauseMs = isReading(live.data) ? Math.min(pollMs, READING_POLL_MS) : pollMs;
  useEffect(() => {
    watch.current?.ask(asked, pauseMs);
    // `stamp` stands for `asked`, a new object at each render.
  }, [client, route, stamp, pauseMs]);
  return live;
}
