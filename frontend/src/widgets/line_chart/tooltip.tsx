/** The exact values under the pointer, highest first. */

import type { Mark, Unit, XKind } from "../../api/types.gen";
import type { ByteUnit } from "../../base/bytes";
import type { Theme } from "../../base/tokens";
import { xText } from "../../model/lines/axis";
import { formatQuantity } from "../../model/words/quantity";
import { ChartTip, type TipPlace } from "../tip/chart_tip";
import type { BandRow, CursorRow } from "./cursor";
import { MARK_WORD } from "./marks";
import { Swatch } from "./swatch";

export interface TooltipProps {
  readonly x: number;
  readonly xKind: XKind;
  readonly unit: Unit;
  readonly byteUnit: ByteUnit;
  readonly theme: Theme;
  readonly rows: readonly CursorRow[];
  readonly band: BandRow | null;
  readonly marks: readonly Mark[];
  readonly at: TipPlace;
}

const MOST_ROWS = 12;
const MOST_MARKS = 4;

function BandRows({ band, rows: lines, ...of }: TooltipProps & { band: BandRow }) {
  const { unit, byteUnit } = of;
  const rank = band.highRank === null ? "" : ` (rank ${band.highRank})`;
  // A line of its own may say the same.
  const said = lines.some(({ value }) => value === band.high);
  const rows = [
    ...(said ? [] : [[`highest${rank}`, band.high] as const]),
    ["95 % of ranks below", band.p95],
    ["median", band.median],
    ["5 % of ranks below", band.p5],
    ["lowest", band.low],
  ] as const;
  return rows.map(([name, value]) => (
    <tr key={name}>
      <td />
      <td>{name}</td>
      <td>{formatQuantity(value, unit, byteUnit)}</td>
    </tr>
  ));
}

function LineRow({ row, props }: { row: CursorRow; props: TooltipProps }) {
  const { unit, byteUnit, theme } = props;
  const merged = row.low < row.value;
  return (
    <tr>
      <td>
        <Swatch theme={theme} colour={row.colour} dash={row.dash} />
      </td>
      <td>
        {row.label}
        {row.note !== null && <span class="chart-note"> {row.note}</span>}
      </td>
      <td>
        {formatQuantity(row.value, unit, byteUnit)}
        {merged && (
          <span class="chart-note">
            {" "}
            from {formatQuantity(row.low, unit, byteUnit)}
          </span>
        )}
      </td>
    </tr>
  );
}

export function Tooltip(props: TooltipProps) {
  const { rows, band, marks } = props;
  const shown = rows.slice(0, MOST_ROWS);
  return (
    <ChartTip at={props.at}>
      <div class="chart-tip-x">{xText(props.x, props.xKind)}</div>
      {marks.slice(0, MOST_MARKS).map((mark, i) => (
        <div key={i} class={`chart-tip-mark is-${mark.kind}`}>
          {MARK_WORD[mark.kind]}
          {mark.rank !== null && ` on rank ${mark.rank}`}
          {mark.label !== "" && `: ${mark.label}`}
        </div>
      ))}
      {marks.length > MOST_MARKS && (
        <div>and {marks.length - MOST_MARKS} more marks</div>
      )}
      <table>
        <tbody>
          {band !== null && <BandRows {...props} band={band} />}
          {shown.map((row) => (
            <LineRow key={row.id} row={row} props={props} />
          ))}
        </tbody>
      </table>
      {rows.length > shown.length && (
        <div class="chart-note">and {rows.length - shown.length} lower ones</div>
      )}
    </ChartTip>
  );
}
