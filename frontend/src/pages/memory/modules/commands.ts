/** What the Modules page can do by key, palette and the shell's export menu. */

import type { ModulesResponse } from "../../../api/types.gen";
import { commandsOf, type Command } from "../../../base/commands";
import { originOf } from "../../../model/words/origin";
import { exportCommands } from "../../../widgets/export/export_commands";
import {
  ALL_FORMATS,
  TABLE_FORMATS,
  type ExportSource,
} from "../../../widgets/export/source";
import type { ViewProps } from "../../shared/view_props";
import { measureWords, type ModulesParams } from "./params";
import { modulesTable, type Modules } from "./rows";
import { STATE_WORDS } from "./words";

export function moduleExport(
  data: ModulesResponse,
  modules: Modules,
  params: ModulesParams,
): ExportSource {
  return {
    origin: originOf(data.run),
    name: `modules rank ${data.rank ?? 0} ${STATE_WORDS[data.state]}`,
    table: () => modulesTable(data, modules, params.find),
    about: () => ({
      window: data.windows.find((one) => one.id === data.window) ?? data.window,
      rank: data.rank,
      state: data.state,
      call: data.call,
      device: data.device,
      measure: data.measure,
      baseline: data.baseline,
      facts: data.facts,
    }),
  };
}

export interface ModulesNow {
  readonly data: ModulesResponse;
  readonly modules: Modules;
  readonly params: ModulesParams;
  readonly view: ViewProps;
}

export interface ModuleActions {
  readonly now: ModulesNow;
  /** What the timeline exports; null where there is no timeline. */
  readonly timeline: (() => ExportSource | null) | null;
}

export function moduleCommands({ now, timeline }: ModuleActions): readonly Command[] {
  const { data, modules, params, view } = now;
  const { say, setParams } = view;
  const measure = data.measure === "held" ? "total" : "held";
  return [
    ...commandsOf("modules", "Modules", [
      [
        "flat",
        "Switch between tree and list",
        () => setParams({ flat: params.flat ? null : "1", depth: null }),
      ],
      [
        "measure",
        "Switch between memory by module and the rank’s total",
        () => setParams(measureWords(measure, data), "push"),
      ],
      ["before", "Previous tracked step", () => step(now, -1), "{"],
      ["after", "Next tracked step", () => step(now, 1), "}"],
      ["close", "Close the details", () => setParams({ module: null }), "Escape"],
    ]),
    ...exportCommands({
      view: "modules",
      subject: "module table",
      formats: TABLE_FORMATS,
      source: () => moduleExport(data, modules, params),
      say,
    }),
    ...(timeline === null
      ? []
      : exportCommands({
          view: "modules",
          subject: "stacked categories",
          formats: ALL_FORMATS,
          source: timeline,
          say,
        })),
  ];
}

function step({ data, view }: ModulesNow, side: -1 | 1): void {
  const at = data.windows.findIndex((one) => one.id === data.window);
  const next = data.windows[at + side];
  if (next === undefined) {
    view.say(
      side < 0 ? "This is the first tracked step" : "This is the last tracked step",
    );
    return;
  }
  view.setParams({ window: next.id, call: null, t0: null, t1: null }, "push");
}
