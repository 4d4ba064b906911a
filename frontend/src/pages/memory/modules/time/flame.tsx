/** Modules as a flame graph of time: those around above what they hold. */

import { useMemo, useState } from "preact/hooks";
import type { ModuleTimesResponse } from "../../../../api/types.gen";
import { formatShare } from "../../../../base/bytes";
import { formatSeconds } from "../../../../base/durations";
import type { Theme } from "../../../../base/tokens";
import type { Tree } from "../../../../model/tree";
import { partColour } from "../../../../render/palette";
import { Segmented } from "../../../shared/controls/choices";
import {
  FLAME_WORDS,
  flameTimes,
  flameValues,
  moduleBoxes,
  type FlameTime,
} from "./boxes";

const BOX_PX = 18;

export function TimeFlame(props: {
  readonly data: ModuleTimesResponse;
  readonly tree: Tree;
  readonly paths: readonly string[];
  readonly theme: Theme;
  /** The module whose row is selected in the table. */
  readonly selected: number | null;
  readonly onSelect: (id: number) => void;
}) {
  const { data, tree, paths, theme, selected, onSelect } = props;
  const times = flameTimes(data);
  const [wanted, setWanted] = useState<FlameTime | null>(null);
  const [zoomed, setZoomed] = useState<string | null>(null);
  const time = times.find((one) => one === wanted) ?? times[0] ?? "host";
  const values = flameValues(data, time);
  const at = zoomed === null ? -1 : paths.indexOf(zoomed);
  const root = at === -1 ? null : at;
  const boxes = useMemo(() => moduleBoxes(tree, values, root), [tree, values, root]);
  const whole = tree.roots.reduce((sum, id) => sum + (values[id] ?? 0), 0);
  const numRows = boxes.reduce((most, { row }) => Math.max(most, row + 1), 0);
  const words = (id: number): string => {
    const ms = values[id] ?? 0;
    return `${paths[id] ?? ""}\n${formatSeconds(ms / 1e3)}, ${formatShare(ms, whole)}`;
  };
  return (
    <section class="modules-flame-part" aria-label="Flame graph of modules">
      <div class="panel-head">
        <h2>Flame graph</h2>
        <Segmented
          label="What boxes are as wide as"
          options={times}
          chosen={time}
          words={(one) => FLAME_WORDS[one]}
          onChoose={setWanted}
        />
        {root !== null && (
          <button type="button" onClick={() => setZoomed(null)}>
            All modules
          </button>
        )}
      </div>
      {whole > 0 ? (
        <div class="modules-flame">
          <div style={{ height: `${numRows * BOX_PX}px` }}>
            {boxes.map(({ id, x, width, row }) => (
              <button
                key={id}
                type="button"
                class="modules-flame-box"
                aria-pressed={id === selected}
                title={words(id)}
                style={{
                  left: `${x * 100}%`,
                  width: `${width * 100}%`,
                  top: `${row * BOX_PX}px`,
                  height: `${BOX_PX - 1}px`,
                  borderColor: partColour(
                    theme,
                    time.startsWith("backward") ? "backward" : "forward",
                  ),
                }}
                onClick={() => {
                  onSelect(id);
                  setZoomed(paths[id] ?? null);
                }}
              >
                {data.name[id]}
              </button>
            ))}
          </div>
        </div>
      ) : (
        <p class="quiet">No module took any time of this kind.</p>
      )}
    </section>
  );
}
