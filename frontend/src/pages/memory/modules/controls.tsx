/** What the module table shows: window, rank, state, call, measure, comparison. */

import type { ModulesResponse, ModuleWindow } from "../../../api/types.gen";
import { formatInteger } from "../../../base/bytes";
import { Choice } from "../../shared/controls/choices";
import { firstAgainst, measureWords, type ModulesParams } from "./params";
import {
  AGAINST_KINDS,
  AGAINST_WORDS,
  STATE_WORDS,
  stateOptions,
  windowOptions,
  windowWords,
  type Options,
} from "./words";

type SetParams = (
  changes: Readonly<Record<string, string | null>>,
  how?: "replace" | "push",
) => void;

export interface ControlsProps {
  readonly data: ModulesResponse;
  readonly params: ModulesParams;
  readonly setParams: SetParams;
  /** The rank of the shell; null: the server chooses. */
  readonly rank: number | null;
  readonly chooseRank: (rank: number | null) => void;
}

export function Controls(props: ControlsProps) {
  const { data, params, setParams } = props;
  return (
    <div class="modules-controls">
      <WindowSelect {...props} />
      <RankSelect {...props} />
      <Choice
        label="Moment"
        value={data.state}
        onChange={(state) => setParams({ state, call: null }, "push")}
      >
        <Grouped
          groups={stateOptions(data.states)}
          value={(state) => state}
          words={(state) => STATE_WORDS[state]}
        />
      </Choice>
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
      <Measure {...props} />
      <Against {...props} />
    </div>
  );
}

/** Calls beyond it are reached by the timeline; a longer list helps nobody. */
const MOST_CALLS = 200;

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

function Windows({ windows }: { readonly windows: readonly ModuleWindow[] }) {
  const groups = windowOptions(windows);
  return (
    <Grouped
      groups={groups}
      value={(one) => one.id}
      // A closed list shows only the option: it must name its function.
      words={(one) => `${one.function || "by hand"}, ${windowWords(one)}`}
    />
  );
}

function WindowSelect({ data, setParams }: ControlsProps) {
  const left = data.numWindows - data.windows.length;
  return (
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
  );
}

function RankSelect({ data, rank, chooseRank }: ControlsProps) {
  const highest = rank === null ? data.rank : null;
  return (
    <Choice
      label="Rank"
      value={rank === null ? "" : (data.rank?.toString() ?? "")}
      onChange={(value) => chooseRank(value === "" ? null : Number(value))}
    >
      <option value="">
        {highest === null ? "the highest" : `the highest (${highest})`}
      </option>
      {Array.from(data.ranks, (one) => (
        <option key={one} value={one}>
          {one}
        </option>
      ))}
    </Choice>
  );
}

const MEASURES = [
  ["held", "By module", "What each module holds, with the modules below it"],
  ["total", "Rank total", "All that the rank held when each module ran"],
] as const;

function Measure({ data, setParams }: ControlsProps) {
  const hasHeld = data.facts?.hasHeld !== false;
  return (
    <div class="segmented" role="group" aria-label="Whose memory">
      <span class="quiet">Memory</span>
      {MEASURES.map(([measure, words, title]) => (
        <button
          key={measure}
          type="button"
          class="button"
          aria-pressed={data.measure === measure}
          disabled={measure === "held" && !hasHeld}
          title={
            measure === "held" && !hasHeld
              ? "The report this was imported from holds the rank’s totals only"
              : title
          }
          onClick={() => setParams(measureWords(measure, data), "push")}
        >
          {words}
        </button>
      ))}
    </div>
  );
}

function Against(props: ControlsProps) {
  const { data, setParams } = props;
  const { baseline } = data;
  const possible = AGAINST_KINDS.filter((kind) => {
    if (kind === "state") return data.states.length > 1;
    if (kind === "window") return data.windows.length > 1;
    return data.ranks.length > 1;
  });
  return (
    <>
      <Choice
        label="Compare with"
        value={baseline?.kind ?? ""}
        onChange={(value) => {
          const kind = AGAINST_KINDS.find((one) => one === value) ?? null;
          setParams(firstAgainst(kind, data), "push");
        }}
      >
        <option value="">nothing</option>
        {possible.map((kind) => (
          <option key={kind} value={kind}>
            {AGAINST_WORDS[kind]}
          </option>
        ))}
      </Choice>
      <AgainstWhat {...props} />
    </>
  );
}

/** Which state, window or rank is compared with. */
function AgainstWhat({ data, setParams }: ControlsProps) {
  const { baseline } = data;
  switch (baseline?.kind) {
    case "state":
      return (
        <Choice
          label="Moment"
          value={baseline.state}
          onChange={(state) => setParams({ against_state: state }, "push")}
        >
          <Grouped
            groups={stateOptions(data.states)}
            value={(state) => state}
            words={(state) => STATE_WORDS[state]}
          />
        </Choice>
      );
    case "window":
      return (
        <Choice
          label="Tracked step"
          value={baseline.window}
          onChange={(window) => setParams({ against_window: window }, "push")}
        >
          <Windows windows={data.windows} />
        </Choice>
      );
    case "rank":
      return (
        <Choice
          label="Rank"
          value={baseline.rank?.toString() ?? ""}
          onChange={(rank) => setParams({ against_rank: rank }, "push")}
        >
          {Array.from(data.ranks, (rank) => (
            <option key={rank} value={rank}>
              {rank}
            </option>
          ))}
        </Choice>
      );
    case "median":
    case undefined:
      return null;
  }
}
