/** The table of contents: every view, in the rail's order. Keys 1..9 follow it. */

import type { ComponentType } from "preact";
import type { ViewProps } from "../views/view_props";

export interface Page {
  /** The view's word: in the URL, the route, and the folder under `views`. */
  readonly name: string;
  readonly title: string;
  readonly group: "Memory" | "Time" | "Host";
  readonly load: () => Promise<ComponentType<ViewProps>>;
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
    name: "host",
    title: "Host",
    group: "Host",
    load: async () => (await import("../views/host/host")).HostView,
  },
];

export const GROUPS: readonly Page["group"][] = ["Memory", "Time", "Host"];

export function findPage(name: string): Page {
  return PAGES.find((page) => page.name === name) ?? PAGES[0];
}
