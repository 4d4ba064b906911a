/** The table of contents: every view, in the rail's order. Keys follow it: see `page_keys`. */

import type { ComponentType } from "preact";
import type { Query, Route } from "../api/client";
import type { ViewProps } from "../views/view_props";
import type { Place } from "./location";

export interface Page {
  /** The view's word: in the URL, the route, and the folder under `views`. */
  readonly name: string;
  readonly title: string;
  readonly group: "Memory" | "Time" | "Host" | "Compare";
  readonly load: () => Promise<ComponentType<ViewProps>>;
  /** What its first picture is made of, where the address says enough. */
  readonly ahead?: (place: Place) => readonly (readonly [Route, Query])[];
}

/** A history is opened while the page is still loading. */
function ofHistory({ run, rank, params }: Place): readonly (readonly [Route, Query])[] {
  const history = params.get("history") ?? "";
  if (run === "" || history === "") return [];
  return [
    ["histories", { run, rank }],
    ["history", { run, history }],
  ];
}

export const PAGES: readonly [Page, ...Page[]] = [
  {
    name: "overview",
    title: "Overview",
    group: "Memory",
    load: async () => (await import("../views/overview/overview")).OverviewView,
  },
  {
    name: "timeline",
    title: "Timeline",
    group: "Memory",
    load: async () => (await import("../views/timeline/timeline")).TimelineView,
  },
  {
    name: "modules",
    title: "Modules",
    group: "Memory",
    load: async () => (await import("../views/modules/modules")).ModulesView,
  },
  {
    name: "functions",
    title: "Functions",
    group: "Memory",
    load: async () => (await import("../views/functions/functions")).FunctionsView,
  },
  {
    name: "allocations",
    title: "Allocations",
    group: "Memory",
    load: async () =>
      (await import("../views/allocations/allocations")).AllocationsView,
    ahead: ofHistory,
  },
  {
    name: "segments",
    title: "Segments",
    group: "Memory",
    load: async () => (await import("../views/segments/segments")).SegmentsView,
    ahead: ofHistory,
  },
  {
    name: "steps",
    title: "Steps",
    group: "Time",
    load: async () => (await import("../views/steps/steps")).StepsView,
  },
  {
    name: "trace",
    title: "Trace",
    group: "Time",
    load: async () => (await import("../views/trace/trace")).TraceView,
  },
  {
    name: "operators",
    title: "Operators",
    group: "Time",
    load: async () => (await import("../views/operators/operators")).OperatorsView,
  },
  {
    name: "kernels",
    title: "Kernels",
    group: "Time",
    load: async () => (await import("../views/kernels/kernels")).KernelsView,
  },
  {
    name: "host",
    title: "Host",
    group: "Host",
    load: async () => (await import("../views/host/host")).HostView,
  },
  {
    name: "compare",
    title: "Compare",
    group: "Compare",
    load: async () => (await import("../views/compare/compare")).CompareView,
  },
];

export const GROUPS: readonly Page["group"][] = ["Memory", "Time", "Host", "Compare"];

export function findPage(name: string): Page {
  return PAGES.find((page) => page.name === name) ?? PAGES[0];
}

/** The keys of pages, in the rail's order: the row of digits and the two keys after it. */
const KEYS = "1234567890-=";

/** null beyond the last: that page is opened from the rail and the palette. */
export function pageKey(index: number): string | null {
  return KEYS[index] ?? null;
}
