import { useEffect, useMemo, useState } from "preact/hooks";
import type { ApiError, Client, Query } from "../../../api/client";
import type {
  FindingsResponse,
  HistoriesResponse,
  HistoryChoice,
  HistoryDevice,
  HistoryFacts,
  HistoryResponse,
} from "../../../api/types.gen";
import { useLive } from "../../../api/live/use_live";
import type { Live } from "../../../api/live/watch";
import { useDebouncedUrl } from "../../../base/debounced_url";
import type { ViewProps } from "../../shared/view_props";
import { CallStacks } from "../../../model/stacks/call_stacks";
import { clampedMoment } from "../../../widgets/scrubber/place";
import { NO_LINES } from "../../../widgets/block_stack/paint/colours";
import { momentWords, readMemory, shownMoment, type MomentPlace } from "./moment";

/** While a history opens. Each request itself waits up to a second in the server. */
const OPENING_POLL_MS = 50;
/** The server closes histories that are not polled. */
const OPEN_POLL_MS = 20_000;

export interface OpenHistory {
  readonly answer: HistoryResponse;
  readonly facts: HistoryFacts;
  readonly device: HistoryDevice;
  readonly momentPlace: MomentPlace;
  /** run, history and device. */
  readonly place: Query;
}

export interface FollowedHistory {
  /** null until the first answer about this history. */
  readonly answer: HistoryResponse | null;
  readonly error: ApiError | null;
  readonly again: () => void;
}

/**
 * Fetched again for each named history: a dropped file is newer than the last list.
 * Until then a list without it counts as none, or another history would show.
 */
export function useHistories(
  client: Client,
  query: { readonly run: string; readonly rank: number | null },
  named: string,
  pollMs: number,
): Live<HistoriesResponse> {
  const request = { ...query, named: named === "" ? null : named };
  const live = useLive(client, "histories", request, pollMs);
  const [asked, setAsked] = useState("");
  useEffect(() => setAsked(named), [named]);
  const { data, stale } = live;
  const waits = stale || asked !== named;
  const lacks = data !== null && named !== "" && !isListed(data, named);
  return waits && lacks ? { ...live, data: null } : live;
}

function isListed({ histories }: HistoriesResponse, id: string): boolean {
  return histories.some(({ reference }) => reference.id === id);
}

/** `history` null: no request. */
export function useHistory(
  client: Client,
  run: string,
  history: string | null,
): FollowedHistory {
  const [pollMs, setPollMs] = useState(OPENING_POLL_MS);
  const [again, setAgain] = useState<number | null>(null);
  const query = history === null ? null : { run, history, again };
  const live = useLive(client, "history", query, pollMs);
  const { data } = live;
  const same = data?.reference.id === history && data.run.id === run;
  const answer = same ? data : null;
  const wanted =
    answer?.state === "ready" || answer?.state === "failed"
      ? OPEN_POLL_MS
      : OPENING_POLL_MS;
  if (wanted !== pollMs) setPollMs(wanted);
  return {
    answer,
    error: live.error,
    again: () => setAgain(Date.now()),
  };
}

/** The named history, where it is in the list or may be among those left out. */
export function chosenHistory(answer: HistoriesResponse, named: string): string {
  const { histories, numHistories, default: first } = answer;
  const isNamed = isListed(answer, named);
  if (named !== "" && (isNamed || numHistories > histories.length)) return named;
  return first ?? histories.at(-1)?.reference.id ?? "";
}

export function nextHistory(
  { histories }: HistoriesResponse,
  id: string,
): HistoryChoice | null {
  const index = histories.findIndex(({ reference }) => reference.id === id);
  const order = [
    ...histories.slice(index + 1),
    ...histories.slice(0, Math.max(index, 0)).reverse(),
  ];
  return order.find(({ state }) => state !== "failed") ?? null;
}

/** The named device, else the most important one; null: there is none. */
export function chosenDevice(
  facts: HistoryFacts | null,
  named: number | null,
): HistoryDevice | null {
  const devices = facts?.devices ?? [];
  return (
    devices.find((device) => device.device === named) ??
    devices.find((device) => device.device === facts?.defaultDevice) ??
    devices[0] ??
    null
  );
}

/** null until loaded. */
export function useStacks(
  client: Client,
  run: string,
  history: string,
): { readonly stacks: CallStacks | null; readonly error: ApiError | null } {
  const { data, error } = useLive(client, "stacks", { run, history });
  const stacks = useMemo(() => (data === null ? null : new CallStacks(data)), [data]);
  return { stacks, error };
}

/** Source lines in findings, as `CallStacks.stackLabel` writes them. */
export function useCulprits(
  view: Pick<ViewProps, "client" | "run" | "pollMs">,
  rank: number | null,
): ReadonlySet<string> {
  const query = { run: view.run.id, rank };
  const { data } = useLive(view.client, "findings", query, view.pollMs);
  const lines = data === null ? "" : culpritLines(data).join("\n");
  return useMemo(() => (lines === "" ? NO_LINES : new Set(lines.split("\n"))), [lines]);
}

export function culpritLines({ findings }: FindingsResponse): readonly string[] {
  const blamed = findings.filter(({ severity, line }) => severity !== "info" && line);
  return [...new Set(blamed.map(({ line }) => line))].sort();
}

/** The moment: immediate on the page, in the URL once it rests. */
export function useMoment(
  { params, setParams }: ViewProps,
  place: MomentPlace,
): readonly [number, (moment: number) => void] {
  const named = shownMoment(readMemory(params), place);
  const [moment, setMoment] = useState(named);
  const write = useDebouncedUrl({
    params,
    setParams,
    names: ["moment"],
    follow: () => setMoment(named),
  });
  const choose = (next: number): void => {
    setMoment(next);
    write(() => momentWords(next, place));
  };
  return [clampedMoment(moment, place.device.numEvents), choose];
}
