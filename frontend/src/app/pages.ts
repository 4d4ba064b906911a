/**
 * The table of contents: five pages, two of them with tabs. A tab is what an address
 * names; its page follows from it.
 */

import type { ComponentType } from "preact";
import type { Query, Route } from "../api/client";
import type { ViewProps } from "../pages/shared/view_props";
import type { Place } from "./location";

/** In the rail's order; the keys 1 to 5 follow it. */
export const PAGES = ["Overview", "Timeline", "Memory", "Time", "Compare"] as const;

export type PageName = (typeof PAGES)[number];

export interface Tab {
  /** The word in the URL, of the route, and of the folder below `pages`. */
  readonly name: string;
  readonly title: string;
  readonly page: PageName;
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

export const TABS: readonly [Tab, ...Tab[]] = [
  {
    name: "overview",
    title: "Overview",
    page: "Overview",
    load: async () => (await import("../pages/overview/overview")).OverviewView,
  },
  {
    name: "timeline",
    title: "Timeline",
    page: "Timeline",
    load: async () => (await import("../pages/timeline/timeline")).TimelineView,
  },
  {
    name: "blocks",
    title: "Blocks",
    page: "Memory",
    load: async () => (await import("../pages/memory/blocks/blocks")).BlocksView,
    ahead: ofHistory,
  },
  {
    name: "segments",
    title: "Segments",
    page: "Memory",
    load: async () => (await import("../pages/memory/segments/segments")).SegmentsView,
    ahead: ofHistory,
  },
  {
    name: "modules",
    title: "Modules",
    page: "Memory",
    load: async () => (await import("../pages/memory/modules/modules")).ModulesView,
  },
  {
    name: "calls",
    title: "Calls",
    page: "Memory",
    load: async () => (await import("../pages/memory/calls/calls")).CallsView,
  },
  {
    name: "steps",
    title: "Steps",
    page: "Time",
    load: async () => (await import("../pages/time/steps/steps")).StepsView,
  },
  {
    name: "trace",
    title: "Trace",
    page: "Time",
    load: async () => (await import("../pages/time/trace/trace")).TraceView,
  },
  {
    name: "operators",
    title: "Operators",
    page: "Time",
    load: async () => (await import("../pages/time/operators/operators")).OperatorsView,
  },
  {
    name: "kernels",
    title: "Kernels",
    page: "Time",
    load: async () => (await import("../pages/time/kernels/kernels")).KernelsView,
  },
  {
    name: "distributed",
    title: "Distributed",
    page: "Time",
    load: async () =>
      (await import("../pages/time/distributed/distributed")).DistributedView,
  },
  {
    name: "compare",
    title: "Compare",
    page: "Compare",
    load: async () => (await import("../pages/compare/compare")).CompareView,
  },
];

export function findTab(name: string): Tab {
  return TABS.find((tab) => tab.name === name) ?? TABS[0];
}

export function tabsOf(page: PageName): readonly Tab[] {
  return TABS.filter((tab) => tab.page === page);
}

/** A page opens on its first tab; chosen again, on the tab after the one shown. */
export function nextTab(page: PageName, shown: Tab): Tab {
  const tabs = tabsOf(page);
  return tabs[(tabs.indexOf(shown) + 1) % tabs.length] ?? TABS[0];
}
