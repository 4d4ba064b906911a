import type { ReadonlySignal } from "@preact/signals";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { PointPx } from "../../render/gestures";
import { xToPx, type SizePx } from "../../render/viewport";
import { Swatch } from "./legend";
import type { Reader, PlotSight, Reading, ReadingNote } from "./reader";

/** Screen readers get fewer rows. */
const MOST_SPOKEN = 9;

const textOf = (note: ReadingNote): string =>
  typeof note === "string" ? note : note.text;

export function spokenWords(reading: Reading): string {
  const { title, notes = [], rows = [], foot = [] } = reading;
  const told = rows.slice(0, MOST_SPOKEN).map(({ name, value }) => `${name} ${value}`);
  return [title, ...notes.map(textOf), ...told, ...foot.map(textOf)].join(", ");
}

function Notes({ notes }: { readonly notes: readonly ReadingNote[] }) {
  return notes.map((note) => (
    <div
      key={textOf(note)}
      class={typeof note === "string" ? undefined : `tone-${note.class}`}
    >
      {textOf(note)}
    </div>
  ));
}

/** Distance from the pointer. */
const [ASIDE_PX, ABOVE_PX, BELOW_PX] = [14, 10, 12];

function ReadingCard(props: {
  readonly reading: Reading;
  /** CSS px of the chart; `topPx`: the upper edge, or the lower one where `above`. */
  readonly leftPx: number;
  readonly topPx: number;
  readonly flip: boolean;
  readonly above: boolean;
}) {
  const { leftPx, topPx, flip, above } = props;
  const { title, swatch, notes = [], rows = [], foot = [] } = props.reading;
  const side = flip
    ? { right: `calc(100% - ${leftPx - ASIDE_PX}px)` }
    : { left: `${leftPx + ASIDE_PX}px` };
  const height = above
    ? { bottom: `calc(100% - ${topPx - ABOVE_PX}px)` }
    : { top: `${topPx}px` };
  return (
    <div class="chart-tip" style={{ ...side, ...height }} aria-hidden="true">
      <h4>
        {swatch !== undefined && <Swatch colour={swatch} />}
        {title}
      </h4>
      <Notes notes={notes} />
      {rows.length > 0 && (
        <table>
          <tbody>
            {rows.map((row) => (
              <tr key={row.name}>
                <td>{row.swatch !== undefined && <Swatch {...row.swatch} />}</td>
                <td>
                  {row.name}
                  {row.note !== undefined && <span class="quiet"> {row.note}</span>}
                </td>
                <td class="num">{row.value}</td>
                {row.exact !== undefined && <td class="num quiet">{row.exact}</td>}
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <Notes notes={foot} />
    </div>
  );
}

/** At the pointer, on the side with more room. */
export function PointerTip(
  props: SizePx & {
    /** Px of the plot, whose corner is `left`, `top`. */
    readonly point: PointPx;
    readonly left?: number;
    readonly top?: number;
    readonly reading: Reading;
  },
) {
  const { point, left = 0, top = 0, widthPx, heightPx, reading } = props;
  const [flip, above] = [point.x > widthPx / 2, point.y > heightPx / 2];
  const topPx = top + point.y + (above ? 0 : BELOW_PX);
  return (
    <ReadingCard
      leftPx={left + point.x}
      topPx={topPx}
      flip={flip}
      above={above}
      reading={reading}
    />
  );
}

export function ReadingTip(props: {
  /** Px of the plot; null: no tip. */
  readonly hover: ReadonlySignal<PointPx | null>;
  readonly cursor: ReadonlySignal<number | null>;
  readonly read: Reader["read"];
  readonly seen: PlotSight;
  readonly totalPx: number;
  /** At the pointer instead of above or below the plot. */
  readonly beside: boolean;
}) {
  const { seen, totalPx, beside } = props;
  const { left, top, view, size } = seen;
  const root = useRef<HTMLDivElement>(null);
  const [isAbove, setAbove] = useState(false);
  const point = props.hover.value;
  const x = props.cursor.value;
  const reading = point === null || x === null ? null : props.read(x, point, seen);
  // Once each time the pointer enters.
  useLayoutEffect(() => {
    const plot = root.current?.parentElement?.getBoundingClientRect();
    const tip = root.current?.firstElementChild?.getBoundingClientRect();
    if (plot === undefined || tip === undefined) return;
    const fits = plot.bottom + tip.height <= window.innerHeight;
    setAbove(!fits && plot.top > window.innerHeight - plot.bottom);
  }, [reading === null]);
  if (point === null || x === null || reading === null) return null;
  const px = xToPx(view, size.widthPx, x);
  if (beside) {
    return (
      <PointerTip
        {...size}
        left={left}
        top={top}
        reading={reading}
        point={{ x: px, y: point.y }}
      />
    );
  }
  const topPx = isAbove ? top : totalPx;
  const flip = px > size.widthPx / 2;
  return (
    <div ref={root}>
      <ReadingCard
        leftPx={left + px}
        topPx={topPx}
        flip={flip}
        above={isAbove}
        reading={reading}
      />
    </div>
  );
}
