import type { ComponentChildren } from "preact";
import type { StragglersResponse, TableRows } from "../../../api/types.gen";
import type { Theme } from "../../../base/tokens";
import { formatQuantity } from "../../../model/words/quantity";
import { partColour } from "../../../render/palette";

export interface Part {
  readonly name: string;
  readonly label: string;
  readonly help: string;
  readonly colour: string;
  readonly value: number;
  /** Its content is unknown. */
  readonly unseen?: boolean;
}

/** Of a row of a table: its columns with bars. */
export function partsOf(table: TableRows, row: number, theme: Theme): readonly Part[] {
  const own = table.columns.filter(({ bar }) => bar !== "" && bar !== "row");
  return own.map(({ key, title, help, bar, unit, numbers }) => ({
    name: key,
    label: title,
    help,
    colour: partColour(theme, bar),
    value: (numbers[row] ?? NaN) * (unit === "ms" ? 1e-3 : 1),
  }));
}

/** Of a recorded step: of the median rank, or of the first rank that is named. */
export function partsOfStep(
  { parts }: StragglersResponse,
  theme: Theme,
  of: "usual" | "ofFirst",
): readonly Part[] {
  return parts.map((part) => ({
    ...part,
    colour: partColour(theme, part.name),
    value: part[of] ?? NaN,
  }));
}

const inSeconds = (value: number): string => formatQuantity(value, "seconds");

export function PartBar(props: {
  readonly label: ComponentChildren;
  readonly parts: readonly Part[];
  readonly format?: (value: number) => string;
  readonly total?: number;
  /** What fills the bar; default: the sum of the parts. */
  readonly longest?: number;
}) {
  const { label, parts, format = inSeconds } = props;
  const sum = sumOf(parts);
  const { total = sum, longest = sum } = props;
  const tooltips = parts.map((part) => `${part.label} ${format(part.value)}`);
  return (
    <div class="part-bar">
      {label !== "" && <span>{label}</span>}
      <div role="img" aria-label={tooltips.join(", ")}>
        {parts.map((part, i) =>
          part.value > 0 ? (
            <span
              key={part.name}
              class={part.unseen === true ? "is-unseen" : ""}
              title={`${tooltips[i]}\n${part.help}`}
              style={{
                width: `${(100 * part.value) / longest}%`,
                backgroundColor: part.colour,
              }}
            />
          ) : null,
        )}
      </div>
      {label !== "" && <span class="num">{format(total)}</span>}
    </div>
  );
}

export function sumOf(parts: readonly Part[]): number {
  return parts.reduce((sum, { value }) => sum + (value || 0), 0);
}

interface WayOfPart extends Part {
  readonly lead: () => void;
  readonly more?: ComponentChildren;
}

export function PartWays({ parts }: { readonly parts: readonly WayOfPart[] }) {
  return (
    <ul class="part-ways row">
      {parts.map(({ name, label, help, colour, value, more, lead }) => (
        <li key={name}>
          <button type="button" class="button" title={help} onClick={lead}>
            <i class="swatch" style={{ background: colour }} />
            {label} <b>{inSeconds(value)}</b>
            {more}
          </button>
        </li>
      ))}
    </ul>
  );
}
