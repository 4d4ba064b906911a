/** What the module table shows: tracked step, moment, comparison; the rest behind View. */

import type { ModulesResponse, ModuleWindow } from "../../../api/types.gen";
import { formatInteger } from "../../../base/bytes";
import type { Commands } from "../../../base/commands";
import { ExportMenu } from "../../../widgets/export/export_menu";
import { Choice, Segmented } from "../../shared/controls/choices";
import { More } from "../../shared/controls/more";
import { SearchBox } from "../../shared/controls/search_box";
import type { ViewProps } from "../../shared/view_props";
import { moduleExport } from "./commands";
import {
  againstValue,
  againstWords,
  ALL_LEVELS,
  FIRST_DEPTH,
  measureWords,
  type ModulesParams,
} from "./params";
import type { Modules } from "./rows";
import {
  STATE_WORDS,
  stateOptions,
  windowOptions,
  windowWords,
  type Options,
} from "./words";

export interface ControlsProps {
  readonly data: ModulesResponse;
  readonly modules: Modules;
  readonly params: ModulesParams;
  readonly setParams: ViewProps["setParams"];
  readonly commands: Commands;
  readonly numRows: number;
}

export function Controls(props: ControlsProps) {
  const { data, modules, params, setParams } = props;
  const left = data.numWindows - data.windows.length;
  return (
    <div class="modules-controls">
      <Choice
        label="Tracked step"
        value={data.window ?? ""}
        onChange={(window) => {
          // Another window is another stretch of time.
          setParams({ window, call: null, t0: null, t1: null }, "push");
        }}
      >
        <Windows windows={data.windows} />
        {left > 0 && (
          <option disabled>{formatInteger(left)} older ones are not listed</option>
        )}
      </Choice>
      <Choice
        label="Moment"
        value={data.state}
        onChange={(state) => setParams({ state, call: null }, "push")}
      >
        <States states={data.states} />
      </Choice>
      <Against data={data} setParams={setParams} />
      <span class="modules-controls-end">
        <SearchBox
          label="Find modules"
          placeholder={count(props)}
          text={params.find}
          onText={(find) => setParams({ find: find === "" ? null : find })}
          commands={props.commands}
        />
        <ViewOptions {...props} />
        <ExportMenu
          subject="the module table"
          source={moduleExport(data, modules, params)}
        />
      </span>
    </div>
  );
}

function count({ params, modules, numRows }: ControlsProps): string {
  const all = modules.tree.numNodes;
  if (params.flat || params.find !== "") {
    return `${formatInteger(numRows)} of ${formatInteger(all)} modules`;
  }
  return all === 1 ? "1 module" : `${formatInteger(all)} modules`;
}

function Grouped<T>(props: {
  readonly groups: readonly Options<T>[];
  readonly value: (option: T) => string;
  readonly words: (option: T) => string;
}) {
  return (
    <>
      {props.groups.map(({ group, options }) => (
        <optgroup key={group} label={group}>
          {options.map((option) => (
            <option key={props.value(option)} value={props.value(option)}>
              {props.words(option)}
            </option>
          ))}
        </optgroup>
      ))}
    </>
  );
}

interface Prefixed {
  /** What stands before each value. */
  readonly prefix?: string;
}

function States(props: Prefixed & Pick<ModulesResponse, "states">) {
  return (
    <Grouped
      groups={stateOptions(props.states)}
      value={(state) => `${props.prefix ?? ""}${state}`}
      words={(state) => STATE_WORDS[state]}
    />
  );
}

/** A closed list shows only the option: it names its function. */
function optionWords(one: ModuleWindow): string {
  if (one.function === "step" && one.step !== null)
    return `step ${formatInteger(one.step)}, iteration ${formatInteger(one.iteration)}`;
  return `${one.function || "by hand"}, ${windowWords(one)}`;
}

function Windows(props: Prefixed & { readonly windows: readonly ModuleWindow[] }) {
  return (
    <Grouped
      groups={windowOptions(props.windows)}
      value={(one) => `${props.prefix ?? ""}${one.id}`}
      words={optionWords}
    />
  );
}

/** What differences are taken from: another moment, step or rank, or the median. */
function Against({ data, setParams }: Pick<ControlsProps, "data" | "setParams">) {
  const others = data.windows.filter(({ id }) => id !== data.window);
  const ranks = [...data.ranks].filter((rank) => rank !== data.rank);
  return (
    <Choice
      label="Compare with"
      value={againstValue(data.baseline)}
      onChange={(value) => setParams(againstWords(value), "push")}
    >
      <option value="">nothing</option>
      {ranks.length > 0 && <option value="median">the median of all ranks</option>}
      {others.length > 0 && <Windows prefix="window:" windows={others} />}
      <States
        prefix="state:"
        states={data.states.filter((state) => state !== data.state)}
      />
      {ranks.length > 0 && (
        <optgroup label="Another rank">
          {ranks.map((rank) => (
            <option key={rank} value={`rank:${rank}`}>
              rank {rank}
            </option>
          ))}
        </optgroup>
      )}
    </Choice>
  );
}

const MEASURES = {
  held: ["By module", "What each module holds, with the modules below it"],
  total: ["Rank total", "All that the rank held when each module ran"],
} as const;

const SHAPES = {
  tree: ["Tree", "Modules below those that hold them"],
  list: ["List", "All modules, sorted as one list"],
} as const;

/** Calls beyond it are reached by the timeline; a longer list helps nobody. */
const MOST_CALLS = 200;

function ViewOptions({ data, modules, params, setParams }: ControlsProps) {
  const hasHeld = data.facts?.hasHeld !== false;
  return (
    <More label="View">
      <Segmented
        label="Tree or list"
        options={["tree", "list"] as const}
        chosen={params.flat ? "list" : "tree"}
        words={(one) => SHAPES[one]}
        onChoose={(one) =>
          setParams({ flat: one === "list" ? "1" : null, depth: null })
        }
      />
      <DepthSelect
        maxDepth={modules.tree.maxDepth}
        chosen={params.depth ?? (params.flat ? ALL_LEVELS : FIRST_DEPTH)}
        setParams={setParams}
      />
      <Segmented
        label="Whose memory"
        title="Memory"
        options={["held", "total"] as const}
        chosen={data.measure}
        words={(one) =>
          one === "held" && !hasHeld
            ? [
                MEASURES.held[0],
                "The report this was imported from holds the rank’s totals only",
              ]
            : MEASURES[one]
        }
        disabled={(one) => one === "held" && !hasHeld}
        onChoose={(one) => setParams(measureWords(one, data), "push")}
      />
      {data.maxCalls > 1 && (
        <Choice
          label="Call"
          value={params.call === "" ? "" : (data.call?.toString() ?? "")}
          onChange={(call) => setParams({ call }, "push")}
        >
          <option value="">the highest of each module</option>
          {Array.from({ length: Math.min(data.maxCalls, MOST_CALLS) }, (_, call) => (
            <option key={call} value={call}>
              {call + 1}
            </option>
          ))}
        </Choice>
      )}
      {data.devices.length > 1 && (
        <Choice
          label="Device"
          value={data.device}
          onChange={(device) => setParams({ device }, "push")}
        >
          {data.devices.map((device) => (
            <option key={device} value={device}>
              {device}
            </option>
          ))}
        </Choice>
      )}
    </More>
  );
}

export function DepthSelect(props: {
  readonly maxDepth: number;
  readonly chosen: number;
  readonly setParams: ViewProps["setParams"];
}) {
  const { maxDepth, chosen, setParams } = props;
  if (maxDepth === 0) return null;
  return (
    <Choice
      label="Depth"
      value={chosen >= maxDepth ? "all" : chosen.toString()}
      onChange={(depth) => setParams({ depth })}
    >
      {Array.from({ length: maxDepth }, (_, depth) => (
        <option key={depth} value={depth}>
          {depth}
        </option>
      ))}
      <option value="all">all</option>
    </Choice>
  );
}
