import type { ReadonlySignal } from "@preact/signals";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { PointPx } from "../../render/gestures";
import { xToPx } from "../../render/viewport";
import { ChartTip } from "../tip/chart_tip";
import { Swatch, type Named } from "./legend";
import type { Reader, Seen } from "./reader";

export type ReadingNote =
  string | { readonly text: string; readonly class: "bad" | "quiet" | "warn" };

export interface ReadingRow {
  readonly name: string;
  /** After the name, fainter. */
  readonly note?: string | undefined;
  readonly value: string;
  /** After the value, fainter. */
  readonly exact?: string;
  readonly swatch?: Pick<Named, "colour" | "dash" | "isBand">;
}

export interface Reading {
  readonly title: string;
  readonly notes?: readonly ReadingNote[];
  readonly rows?: readonly ReadingRow[];
  readonly foot?: readonly ReadingNote[];
}

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

export function ReadingTip(props: {
  /** Px of the plot; null: no tip. */
  readonly hover: ReadonlySignal<PointPx | null>;
  readonly cursor: ReadonlySignal<number | null>;
  readonly read: Reader["read"];
  readonly seen: Seen;
  readonly totalPx: number;
  /** At the pointer instead of above or below the plot. */
  readonly beside: boolean;
}) {
  const { seen, totalPx, beside } = props;
  const { left, top, view, size } = seen;
  const root = useRef<HTMLDivElement>(null);
  const [isAbove, setAbove] = useState(false);
  const at = props.hover.value;
  const x = props.cursor.value;
  const reading = at === null || x === null ? null : props.read(x, at, seen);
  // Once each time the pointer enters.
  useLayoutEffect(() => {
    const plot = root.current?.parentElement?.getBoundingClientRect();
    const tip = root.current?.firstElementChild?.getBoundingClientRect();
    if (plot === undefined || tip === undefined) return;
    const fits = plot.bottom + tip.height <= window.innerHeight;
    setAbove(!fits && plot.top > window.innerHeight - plot.bottom);
  }, [reading === null]);
  if (at === null || x === null || reading === null) return null;
  const px = xToPx(view, size.widthPx, x);
  const above = beside ? at.y > size.heightPx / 2 : isAbove;
  const topPx = beside ? top + at.y : above ? top : totalPx;
  const place = { leftPx: left + px, topPx, flip: px > size.widthPx / 2, above };
  const { notes = [], rows = [], foot = [] } = reading;
  return (
    <div ref={root}>
      <ChartTip at={place} belowPx={beside ? 12 : 0}>
        <h4>{reading.title}</h4>
        <Notes notes={notes} />
        {rows.length > 0 && (
          <table>
            <tbody>
              {rows.map(({ name, note, value, exact, swatch }) => (
                <tr key={name}>
                  <td>{swatch !== undefined && <Swatch {...swatch} />}</td>
                  <td>
                    {name}
                    {note !== undefined && <span class="quiet"> {note}</span>}
                  </td>
                  <td class="num">{value}</td>
                  {exact !== undefined && <td class="num quiet">{exact}</td>}
                </tr>
              ))}
            </tbody>
          </table>
        )}
        <Notes notes={foot} />
      </ChartTip>
    </div>
  );
}
