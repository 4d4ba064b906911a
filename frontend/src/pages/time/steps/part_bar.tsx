/** One step as a bar of its parts. */

import type { Theme } from "../../../base/tokens";
import { formatQuantity } from "../../../model/words/quantity";
import { partLabel } from "../../../model/words/step_part";
import { partColours } from "../../../render/palette";

export interface BarPart {
  readonly name: string;
  readonly seconds: number;
}

export function PartBar(props: {
  readonly label: string;
  readonly note: string;
  readonly parts: readonly BarPart[];
  readonly total: number;
  /** What fills the width. */
  readonly longest: number;
  readonly theme: Theme;
}) {
  const { parts, total } = props;
  const said = (value: number): string => formatQuantity(value, "seconds");
  const colours = partColours(
    props.theme,
    parts.map(({ name }) => name),
  );
  const words = parts.map(({ name, seconds }) => `${partLabel(name)} ${said(seconds)}`);
  return (
    <div class="step-bar">
      <span>
        {props.label} <span class="quiet">{props.note}</span>
      </span>
      <div class="step-bar-parts" role="img" aria-label={words.join(", ")}>
        {parts.map(({ name, seconds }, i) =>
          seconds > 0 ? (
            <span
              key={name}
              title={`${partLabel(name)}: ${said(seconds)}`}
              style={{
                width: `${(100 * seconds) / props.longest}%`,
                background: colours[i] ?? "grey",
              }}
            />
          ) : null,
        )}
      </div>
      <span class="step-bar-total">{said(total)}</span>
    </div>
  );
}
