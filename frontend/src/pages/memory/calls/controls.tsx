/** Which function, rank and statistics are shown. */

import { useEffect, useRef, useState } from "preact/hooks";
import type {
  CollectedFunction,
  FunctionsResponse,
  FunctionStat,
} from "../../../api/types.gen";
import { formatInteger } from "../../../base/bytes";
import { Choice } from "../../shared/controls/choices";
import { useOutside } from "../../../widgets/menu/use_outside";
import { SIDES, sidesAfterClick, type FunctionsParams, type Side } from "./params";
import { statGroups, statLabel, statsAfterClick } from "./stats";

type SetParams = (
  changes: Readonly<Record<string, string | null>>,
  how?: "replace" | "push",
) => void;

export interface ControlsProps {
  readonly data: FunctionsResponse;
  readonly params: FunctionsParams;
  /** The statistics in the table. */
  readonly shown: readonly FunctionStat[];
  /** The statistic that is drawn. */
  readonly drawn: FunctionStat | null;
  readonly setParams: SetParams;
}

const SIDE_LABELS: Readonly<Record<Side, string>> = {
  start: "Start",
  end: "End",
  difference: "Difference",
};

/** Which function, and which of its numbers is drawn. */
export function Controls({ data, drawn, setParams }: ControlsProps) {
  return (
    <div class="functions-controls">
      <FunctionSelect data={data} setParams={setParams} />
      {drawn !== null && (
        <Choice
          label="Statistic"
          value={drawn.name}
          onChange={(stat) => setParams({ stat })}
        >
          {statGroups(data.stats, "").map(({ title, stats }) => (
            <optgroup key={title} label={title}>
              {stats.map(({ name }) => (
                <option key={name} value={name}>
                  {name}
                </option>
              ))}
            </optgroup>
          ))}
        </Choice>
      )}
    </div>
  );
}

function keyOf(one: Pick<CollectedFunction, "function" | "phase">): string {
  return JSON.stringify([one.function, one.phase]);
}

function FunctionSelect({
  data,
  setParams,
}: {
  readonly data: FunctionsResponse;
  readonly setParams: SetParams;
}) {
  const phases = [...new Set(data.functions.map(({ phase }) => phase))];
  return (
    <label>
      <span class="quiet">Function</span>{" "}
      <select
        class="functions-function"
        value={keyOf({ function: data.function ?? "", phase: data.phase })}
        onChange={(event) => {
          const chosen = data.functions.find(
            (one) => keyOf(one) === event.currentTarget.value,
          );
          if (chosen === undefined) return;
          const { function: name, phase } = chosen;
          setParams({ function: name, phase, attempt: null, iteration: null }, "push");
        }}
      >
        {phases.map((phase) => (
          <optgroup key={phase} label={phase === "" ? "no phase" : phase}>
            {data.functions
              .filter((one) => one.phase === phase)
              .map((one) => (
                <option key={keyOf(one)} value={keyOf(one)}>
                  {one.function === "step" ? "step (the whole step)" : one.function}
                  {phases.length > 1 && `, ${phase}`}
                </option>
              ))}
          </optgroup>
        ))}
      </select>
    </label>
  );
}

/** Which statistics and sides the table has: all that were recorded, with a search. */
export function ColumnPicker({ data, params, shown, drawn, setParams }: ControlsProps) {
  const [open, setOpen] = useState(false);
  const [find, setFind] = useState("");
  const root = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (open) root.current?.querySelector("input")?.focus();
  }, [open]);
  useOutside(root, open, () => setOpen(false));
  const groups = statGroups(data.stats, find);
  return (
    <div
      class="stat-picker"
      ref={root}
      onKeyDown={(event) => {
        if (event.key !== "Escape" || !open) return;
        event.stopPropagation();
        setOpen(false);
        root.current?.querySelector("button")?.focus();
      }}
    >
      <button
        type="button"
        class="button"
        aria-expanded={open}
        aria-haspopup="true"
        onClick={() => setOpen(!open)}
      >
        Columns: {formatInteger(shown.length)} of {formatInteger(data.stats.length)}
      </button>
      {open && (
        <div class="stat-list" role="group" aria-label="Statistics in the table">
          <fieldset class="stat-sides">
            {SIDES.map((side) => (
              <label key={side}>
                <input
                  type="checkbox"
                  checked={params.sides.includes(side)}
                  onChange={() =>
                    setParams({ sides: sidesAfterClick(params.sides, side) })
                  }
                />{" "}
                <span>{SIDE_LABELS[side]}</span>
              </label>
            ))}
          </fieldset>
          <input
            type="text"
            aria-label="Find statistics"
            placeholder="Find, e.g. peak or large_pool"
            autocomplete="off"
            spellcheck={false}
            value={find}
            onInput={(event) => setFind(event.currentTarget.value)}
          />
          <div class="stat-groups">
            {groups.map(({ title, stats }) => (
              <fieldset key={title}>
                <legend>{title}</legend>
                {stats.map(({ name }) => (
                  <label key={name} title={name}>
                    <input
                      type="checkbox"
                      checked={shown.some((stat) => stat.name === name)}
                      onChange={() =>
                        setParams({
                          stats: statsAfterClick(data.stats, shown, drawn, name),
                        })
                      }
                    />{" "}
                    <span>{name}</span>
                    {statLabel(name) !== name && (
                      <span class="quiet"> {statLabel(name)}</span>
                    )}
                  </label>
                ))}
              </fieldset>
            ))}
            {groups.length === 0 && <p class="quiet">No statistic matches.</p>}
          </div>
          <button
            type="button"
            class="button"
            onClick={() => setParams({ stats: null })}
          >
            Only what is drawn
          </button>
        </div>
      )}
    </div>
  );
}
