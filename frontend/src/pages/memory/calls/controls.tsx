import { Popover } from "../../../widgets/menu/menu";
import { useState } from "preact/hooks";
import type { FunctionsResponse } from "../../../api/types.gen";
import { formatInteger } from "../../../base/bytes";
import { Check, Choice } from "../../shared/controls/choices";
import { SearchBox } from "../../shared/controls/search_box";
import type { PageState, usePageState } from "../../shared/page_state";
import {
  foundStats,
  GROUP_WORDS,
  SIDES,
  sidesAfterClick,
  statsAfterClick,
  type CALLS,
  type Side,
} from "./params";

export interface ControlsProps {
  readonly data: FunctionsResponse;
  readonly state: PageState<typeof CALLS>;
  readonly setState: ReturnType<typeof usePageState<typeof CALLS>>[1];
}

export function Controls({ data, setState }: ControlsProps) {
  const { functions, drawn } = data;
  const phases = new Set(functions.map(({ phase }) => phase));
  return (
    <div class="row">
      <Choice
        label="Function"
        value={functions
          .findIndex(
            (collected) =>
              collected.function === data.function && collected.phase === data.phase,
          )
          .toString()}
        onChange={(index) => {
          const { function: name = null, phase = null } =
            functions[Number(index)] ?? {};
          const call = { attempt: null, iteration: null };
          setState({ function: name, phase, ...call }, "push");
        }}
        of={functions.map(({ function: name, phase }, i) => [
          i,
          `${name === "step" ? "step (the whole step)" : name}${phases.size > 1 ? `, ${phase}` : ""}`,
          phase || "no phase",
        ])}
      />
      {drawn !== null && (
        <Choice
          label="Statistic"
          value={drawn.stat.name}
          onChange={(stat) => setState({ stat })}
          of={data.stats.map(({ name, label, group }) => [
            name,
            label,
            GROUP_WORDS[group],
          ])}
        />
      )}
    </div>
  );
}

const SIDE_LABELS: Readonly<Record<Side, string>> = {
  start: "Start",
  end: "End",
  difference: "Difference",
};

export function ColumnPicker({ data, state, setState }: ControlsProps) {
  const { drawn } = data;
  // The answer follows later: a box changes at once.
  const shown = state.stats?.split(",") ?? (drawn === null ? [] : [drawn.stat.name]);
  const [find, setFind] = useState("");
  const matches = foundStats(data.stats, find);
  return (
    <Popover
      label="Columns of the table"
      button={`Columns: ${formatInteger(shown.length)} of ${formatInteger(data.stats.length)}`}
    >
      <div class="row">
        {SIDES.map((side) => (
          <Check
            key={side}
            label={SIDE_LABELS[side]}
            checked={state.sides.includes(side)}
            onChange={() => setState({ sides: sidesAfterClick(state.sides, side) })}
          />
        ))}
      </div>
      <SearchBox
        label="Find statistics"
        placeholder="e.g. peak or large_pool"
        text={find}
        onText={setFind}
      />
      <div class="column-tight functions-checks">
        {matches.map((stat, i) => (
          <>
            {matches[i - 1]?.group !== stat.group && <b>{GROUP_WORDS[stat.group]}</b>}
            <Check
              key={stat.name}
              label={stat.name}
              note={stat.label === stat.name ? undefined : stat.label}
              checked={shown.includes(stat.name)}
              onChange={() => {
                const usual = drawn?.stat.name;
                setState({
                  stats: statsAfterClick(data.stats, shown, usual, stat.name),
                });
              }}
            />
          </>
        ))}
        {matches.length === 0 && <p class="quiet">No statistic matches.</p>}
      </div>
      <button type="button" class="button" onClick={() => setState({ stats: null })}>
        Only what is drawn
      </button>
    </Popover>
  );
}
