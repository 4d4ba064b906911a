/** A tab is what an address names; its page follows from it. */

import type { ComponentType } from "preact";
import type { Query, Route } from "../api/client";
import type { EmptyTab } from "../api/types.gen";
import { sentenceCase } from "../model/words/sentence_case";
import type { ViewProps } from "../pages/shared/view_props";
import type { Place } from "./location";

type Load = () => Promise<ComponentType<ViewProps>>;

/** In the rail's order, which the keys 1 to 5 follow; tabs by their name in the URL. */
const LOADS: Readonly<Record<string, Readonly<Record<string, Load>>>> = {
  Overview: {
    overview: async () => (await import("../pages/overview/overview")).OverviewView,
  },
  Timeline: {
    timeline: async () => (await import("../pages/timeline/timeline")).TimelineView,
  },
  Memory: {
    blocks: async () => (await import("../pages/memory/blocks/blocks")).BlocksView,
    segments: async () =>
      (await import("../pages/memory/segments/segments")).SegmentsView,
    modules: async () => (await import("../pages/memory/modules/modules")).ModulesView,
    calls: async () => (await import("../pages/memory/calls/calls")).CallsView,
  },
  Time: {
    steps: async () => (await import("../pages/time/steps/steps")).StepsView,
    trace: async () => (await import("../pages/time/trace/trace")).TraceView,
    operators: async () =>
      (await import("../pages/time/operators/operators")).OperatorsView,
    kernels: async () => (await import("../pages/time/kernels/kernels")).KernelsView,
    distributed: async () =>
      (await import("../pages/time/distributed/distributed")).DistributedView,
  },
  Compare: {
    compare: async () => (await import("../pages/compare/compare")).CompareView,
  },
};

export interface Tab {
  /** In the URL, of the route, and of the folder below `pages`. */
  readonly name: string;
  readonly title: string;
  readonly page: string;
  readonly load: Load;
}

export const PAGES = Object.keys(LOADS);

export const TABS: readonly Tab[] = Object.entries(LOADS).flatMap(([page, tabs]) =>
  Object.entries(tabs).map(([name, load]) => ({
    name,
    title: sentenceCase(name),
    page,
    load,
  })),
);

export function findTab(name: string): Tab {
  const namedTab = TABS.find((tab) => tab.name === name) ?? TABS[0];
  if (namedTab === undefined) throw new Error("There is no page.");
  return namedTab;
}

/** A failure is reported when the tab is shown. */
export function preload(tab: Tab): void {
  tab.load().catch(() => undefined);
}

export function tabsOf(page: string): readonly Tab[] {
  return TABS.filter((tab) => tab.page === page);
}

/**
 * Skips tabs without data where any has some; a page chosen again shows its next tab,
 * another page its `last` one.
 */
export function nextTab(
  page: string,
  shown: Tab,
  empty: readonly EmptyTab[],
  last = "",
): Tab {
  const tabs = tabsOf(page);
  const isShown = tabs.includes(shown);
  const after = tabs.findIndex((tab) => tab.name === (isShown ? shown.name : last));
  const first = after < 0 ? 0 : after + Number(isShown);
  const order = [...tabs.slice(first), ...tabs.slice(0, first)];
  const full = order.find(
    (tab) => !empty.some((emptyTab) => emptyTab.tab === tab.name),
  );
  return full ?? order[0] ?? shown;
}

/** Requests of a tab's first picture, where the address says enough. */
export function aheadOf(
  tab: Tab,
  { run, rank, params }: Place,
): readonly (readonly [Route, Query])[] {
  const history = params.get("history") ?? "";
  const isKnown = run !== "" && history !== "";
  if (!isKnown || !["blocks", "segments"].includes(tab.name)) return [];
  return [
    ["histories", { run, rank }],
    ["history", { run, history }],
  ];
}
