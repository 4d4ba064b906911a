import type { ReadonlySignal } from "@preact/signals";
import type { LegendItem } from "../export/figure";

export interface LegendEntry extends LegendItem {
  readonly help?: string | undefined;
  /** After the name, fainter. */
  readonly note?: string | undefined;
  readonly value?: string;
  /** Also the area around a line. */
  readonly isBand?: boolean;
  readonly isHidden?: boolean;
  /** Whether it is shown alone; absent: a press hides it. */
  readonly isAlone?: boolean;
  readonly hatch?: string;
}

export function Swatch({
  colour,
  dash,
  isBand = false,
  scale,
  hatch,
}: Pick<LegendEntry, "colour" | "dash" | "hatch" | "isBand" | "scale">) {
  if (scale !== undefined) {
    const background = `linear-gradient(to right, ${scale.join(", ")})`;
    return <span class="swatch" style={{ background, width: "140px" }} />;
  }
  if (dash === undefined) {
    const lines = `repeating-linear-gradient(135deg, ${hatch ?? ""} 0 1px, ${colour} 1px 5px)`;
    const background = hatch === undefined ? colour : lines;
    return <span class="swatch" style={{ background }} />;
  }
  return (
    <svg class="chart-swatch" width="18" height="10" aria-hidden="true">
      {isBand && <rect width="18" height="10" fill={colour} opacity="0.3" />}
      <path
        d="M0 5 H18"
        fill="none"
        stroke={colour}
        stroke-width={isBand ? 2 : 2.5}
        stroke-dasharray={dash.join(" ")}
      />
    </svg>
  );
}

export function Legend(props: {
  readonly items: readonly LegendEntry[];
  readonly onToggle?: ((index: number) => void) | undefined;
}) {
  const { items, onToggle } = props;
  return (
    <ul class="plot-legend">
      {items.map((item, i) => {
        const { label, note, value, help, isHidden = false, isAlone } = item;
        const content = (
          <>
            <Swatch {...item} />
            <span class="cut">{label}</span>
            {note !== undefined && <span class="quiet">{note}</span>}
            {value !== undefined && <span class="chart-value">{value}</span>}
          </>
        );
        const toggle = `${isHidden ? "Show" : "Hide"} ${label}`;
        return (
          <li key={label} title={help}>
            {onToggle === undefined ? (
              content
            ) : (
              <button
                type="button"
                class={
                  isHidden ? `is-faded ${isAlone === undefined ? "is-gone" : ""}` : ""
                }
                aria-pressed={isAlone ?? !isHidden}
                title={isAlone === undefined ? toggle : help}
                onClick={() => onToggle(i)}
              >
                {content}
              </button>
            )}
          </li>
        );
      })}
    </ul>
  );
}

export function CursorLegend(props: {
  readonly names: (x: number | null) => readonly LegendEntry[];
  readonly cursor: ReadonlySignal<number | null>;
  readonly onToggle?: ((index: number) => void) | undefined;
}) {
  return <Legend items={props.names(props.cursor.value)} onToggle={props.onToggle} />;
}
