/** What the Trace page does besides drawing: first look, files, Perfetto. */

import type {
  RunSummary,
  TraceRangeResponse,
  TraceResponse,
  TraceSource,
} from "../../../api/types.gen";
import type { Origin } from "../../../model/words/origin";
import type { ExportSource } from "../../../widgets/export/source";
import { openInPerfetto, perfettoPlace } from "./perfetto";
import { around, LEAST_NS, within, type NsRange } from "./plot/layout";
import { commandsOf, type Command } from "../../../base/commands";
import { panStep, zoomStep } from "../../../render/gestures";
import type { Limits, Viewport } from "../../../render/viewport";
import { exportCommands } from "../../../widgets/export/export_commands";

/** What is shown first: the step that the server found, with a little around it. */
export function firstWindow(
  { focus }: Pick<TraceResponse, "focus">,
  extent: NsRange,
): NsRange {
  if (focus === null || focus.endNs <= focus.startNs) return extent;
  return within(around(focus.startNs, focus.endNs, 0.02), extent);
}

export function fileUrl(run: string, source: string): string {
  const words = new URLSearchParams({ run, source });
  return `./trace_file?${words.toString()}`;
}

export function mergedUrl(run: string): string {
  return `./trace_merged?${new URLSearchParams({ run }).toString()}`;
}

/** The one file that is shown, where there is one alone; null: all are merged. */
function onlyFile({ sources }: Pick<TraceResponse, "sources">): TraceSource | null {
  const others = sources.filter(({ kind }) => kind !== "counters");
  const [only] = others;
  return others.length === 1 && only?.hasFile === true ? only : null;
}

export function perfettoUrl(
  answer: Pick<TraceResponse, "sources">,
  run: string,
): string {
  const only = onlyFile(answer);
  return only === null ? mergedUrl(run) : fileUrl(run, only.id);
}

export function openPerfetto(
  answer: TraceResponse,
  run: RunSummary,
  say: (sentence: string) => void,
): void {
  const place = perfettoPlace(answer.perfetto, document.baseURI);
  const url = perfettoUrl(answer, run.id);
  say("Handing the trace to Perfetto’s tab");
  const fileName = onlyFile(answer)?.name ?? `${run.name}.merged_trace.json.gz`;
  openInPerfetto(place, run.name, fileName, async () => {
    const response = await fetch(url, { cache: "no-store" });
    if (!response.ok) throw new Error(await refusalOf(response));
    return response;
  }).catch((error: unknown) => {
    const why = error instanceof Error ? error.message : String(error);
    say(`Perfetto was not given the trace: ${why}`);
  });
}

async function refusalOf(response: Response): Promise<string> {
  try {
    const body: unknown = await response.json();
    if (typeof body === "object" && body !== null && "what" in body) {
      return String(body.what);
    }
  } catch {
    // Not our server's own words.
  }
  return `the server answered ${response.status}`;
}

export function rangeExport(sums: TraceRangeResponse, origin: Origin): ExportSource {
  return {
    origin,
    name: "trace sums by name",
    table: () => ({
      numRows: sums.names.length,
      columns: [
        { name: "name", values: sums.names },
        { name: "category", values: sums.categories },
        { name: "count", values: sums.count },
        { name: "total (ns)", values: sums.totalNs },
        { name: "self (ns)", values: sums.selfNs },
        { name: "longest (ns)", values: sums.maxNs },
      ],
    }),
    about: () => ({ slices: sums.numSlices }),
  };
}

/** `rank0.pt.trace.json.gz · 3.1 MiB`. */
export function sourceTitle({ kind, name, rank }: TraceSource): string {
  const of = rank === null ? "" : `rank ${rank}: `;
  return kind === "spans" ? `${of}spans` : `${of}${name}`;
}

export interface TraceNow {
  readonly window: NsRange;
  readonly world: NsRange;
  readonly setWindow: (window: NsRange) => void;
  readonly fit: () => void;
  readonly search: () => void;
  readonly next: (sign: 1 | -1) => void;
  readonly step: (sign: 1 | -1) => void;
  readonly instant: (sign: 1 | -1) => void;
  readonly clear: () => void;
  readonly perfetto: () => void;
  readonly table: () => void;
  readonly mark: () => void;
  readonly source: ExportSource | null;
  readonly say: (sentence: string) => void;
}

export function traceCommands(now: TraceNow): readonly Command[] {
  const { window, world, next, step, instant } = now;
  const moving = (move: (view: Viewport, limits: Limits) => Viewport) => () => {
    const limits: Limits = {
      world: { x0: world.low, x1: world.high, y0: 0, y1: 1 },
      leastX: LEAST_NS,
      leastY: 1,
    };
    const view = move({ x0: window.low, x1: window.high, y0: 0, y1: 1 }, limits);
    now.setWindow({ low: view.x0, high: view.x1 });
  };
  const zoom = (sign: number) =>
    moving((view, limits) => zoomStep(view, limits, sign, "x"));
  const pan = (sign: number) => moving((view, limits) => panStep(view, limits, sign));
  return [
    ...commandsOf("trace", "Trace", [
      ["in", "Zoom in", zoom(-1), "w"],
      ["out", "Zoom out", zoom(1), "s"],
      ["left", "Pan to the left", pan(-1), "a"],
      ["right", "Pan to the right", pan(1), "d"],
      ["fit", "Show everything", now.fit, "f"],
      ["search", "Search names of slices and instants", now.search, "/"],
      ["next", "Next that was found", () => next(1), "n"],
      ["before", "Previous that was found", () => next(-1)],
      ["later", "Next step", () => step(1), "]"],
      ["earlier", "Previous step", () => step(-1), "["],
      ["instant", "Next instant", () => instant(1), "."],
      ["instant_before", "Previous instant", () => instant(-1), ","],
      ["perfetto", "Open in Perfetto", now.perfetto],
      ["table", "Sum up what is in sight by name", now.table, "t"],
      ["mark", "Set a mark; a second one measures between them", now.mark, "m"],
      ["clear", "Clear selection", now.clear, "Escape"],
    ]),
    ...exportCommands({
      view: "trace",
      subject: "sums by name",
      formats: ["csv", "json"],
      source: () => now.source,
      say: now.say,
    }),
  ];
}
