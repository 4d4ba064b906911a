import { Popover } from "../../../widgets/menu/menu";
import type { ModulesResponse } from "../../../api/types.gen";
import { counted, formatInteger } from "../../../base/bytes";
import {
  ALL_LEVELS,
  Choice,
  DepthSelect,
  Segmented,
  type Option,
} from "../../shared/controls/choices";
import { SearchBox } from "../../shared/controls/search_box";
import type { Modules } from "./columns";
import { FIRST_DEPTH, measureState, type ModulesPage } from "./params";

interface ControlsProps extends ModulesPage {
  readonly data: ModulesResponse;
  readonly modules: Modules;
  readonly numRows: number;
}

export function Controls(props: ControlsProps) {
  const { data, modules, state, setState, numRows } = props;
  const left = data.numWindows - data.windows.length;
  const all = counted(modules.num, "module");
  const isPart = state.flat || state.find !== "";
  return (
    <div class="modules-controls row">
      <Choice
        label="Tracked step"
        value={data.window ?? ""}
        of={windowOptions(data)}
        onChange={(window) => {
          // Another tracked step has another range of time.
          setState({ window, call: null, range: null }, "push");
        }}
      >
        {left > 0 && <option disabled>{counted(left, "older step")} not listed</option>}
      </Choice>
      <Choice
        label="Moment"
        value={data.state}
        of={data.states.map((moment) => [moment.state, moment.words, moment.group])}
        onChange={(moment) => setState({ state: moment, call: null }, "push")}
      />
      <Choice
        label="Compare with"
        value={data.baseline === null ? "" : (state.against ?? "")}
        of={againstOptions(data)}
        onChange={(against) => setState({ against: against || null }, "push")}
      />
      <span class="row end">
        <SearchBox
          label="Find modules"
          placeholder={isPart ? `${formatInteger(numRows)} of ${all}` : all}
          text={state.find}
          onText={(find) => setState({ find })}
          commands={props.view.commands}
        />
        <ViewOptions {...props} />
      </span>
    </div>
  );
}

function windowOptions({ windows }: ModulesResponse): readonly Option[] {
  return windows.toReversed().map(({ id, words: label, group }) => [id, label, group]);
}

function againstOptions(data: ModulesResponse): readonly Option[] {
  const ranks = [...data.ranks].filter((rank) => rank !== data.rank);
  const states = data.states.filter(({ state }) => state !== data.state);
  const windows = windowOptions(data).filter(([id]) => id !== data.window);
  return [
    ["", "nothing"],
    ...(ranks.length > 0 ? [["median", "the median of all ranks"] as const] : []),
    ...windows.map(([id, label, group]): Option => [`window:${id}`, label, group]),
    ...states.map(({ state, words: label, group }): Option => [
      `state:${state}`,
      label,
      group,
    ]),
    ...ranks.map((rank): Option => [`rank:${rank}`, `rank ${rank}`, "Another rank"]),
  ];
}

const MEASURES = {
  held: ["By module", "What each module holds, with the modules below it"],
  total: ["Rank total", "All that the rank held when each module ran"],
} as const;
const ONLY_TOTALS = "The report this was imported from holds the rank’s totals only";

const SHAPES = {
  tree: ["Tree", "Modules below those that hold them"],
  list: ["List", "All modules, sorted as one list"],
} as const;

/** Further calls are reached by the timeline. */
const MOST_CALLS = 200;

function ViewOptions({ data, modules, state, setState }: ControlsProps) {
  const onlyTotals = data.facts?.hasHeld === false;
  const numCalls = Math.min(data.maxCalls, MOST_CALLS);
  return (
    <Popover label="View" button="View">
      <Segmented
        label="Tree or list"
        chosen={state.flat ? "list" : "tree"}
        labels={SHAPES}
        onChoose={(option) => setState({ flat: option === "list", depth: null })}
      />
      <DepthSelect
        maxDepth={modules.tree.maxDepth}
        chosen={state.depth ?? (state.flat ? ALL_LEVELS : FIRST_DEPTH)}
        onChange={(depth) => setState({ depth })}
      />
      <Segmented
        label="Whose memory"
        title="Memory"
        chosen={data.measure}
        labels={
          onlyTotals ? { ...MEASURES, held: ["By module", ONLY_TOTALS] } : MEASURES
        }
        disabled={(option) => onlyTotals && option === "held"}
        onChoose={(option) => setState(measureState(option, data), "push")}
      />
      {data.maxCalls > 1 && (
        <Choice
          label="Call"
          value={state.call?.toString() ?? ""}
          of={[
            ["", "the highest of each module"],
            ...Array.from({ length: numCalls }, (_, call): Option => [
              call,
              formatInteger(call + 1),
            ]),
          ]}
          onChange={(call) => setState({ call: call === "" ? null : +call }, "push")}
        />
      )}
      {data.devices.length > 1 && (
        <Choice
          label="Device"
          value={data.device}
          of={data.devices.map((device) => [device, device])}
          onChange={(device) => setState({ device }, "push")}
        />
      )}
    </Popover>
  );
}
