/** The columns of the module table: words, colours and bars of every cell. Pure. */

import type { ModulesResponse } from "../../../api/types.gen";
import { formatInteger, type ByteUnit } from "../../../base/bytes";
import type { Theme } from "../../../base/tokens";
import {
  categoryColour,
  categoryColours,
  divergingColours,
} from "../../../model/category";
import { formatExact, formatQuantity } from "../../../model/words/quantity";
import { formatSigned, formatSignedExact } from "../../../model/words/signed";
import { headingWidth, inTwoLines } from "../../../widgets/row_table/headings";
import type { Cell, CellBar, TreeColumn } from "../../../widgets/tree_table/types";
import { shownValue, type BytesColumn, type Modules } from "./rows";
import { baselineWords, STATE_WORDS } from "./words";

export interface ColumnsInput {
  readonly data: ModulesResponse;
  readonly modules: Modules;
  readonly bytes: readonly BytesColumn[];
  readonly flat: boolean;
  readonly theme: Theme;
  readonly byteUnit: ByteUnit;
}

const HINTS: ReadonlyMap<string, string> = new Map([
  [
    "total",
    "All that the rank held at the module’s moment, whoever holds it: what torch’s trackers print",
  ],
  ["held", "What the module holds, with all modules below it"],
  [
    "own",
    "What the module holds by itself, without the modules below it: its parameters, gradients and optimizer states, and what its code allocated",
  ],
]);

/** Room for `+1,016 MiB`. */
const LEAST_PX = 88;

/** The largest size of any number shown: every bar is a share of it. */
function scaleOf(columns: readonly BytesColumn[]): number {
  let most = 0;
  for (const column of columns) {
    for (const id of column.bytes.keys()) {
      const size = Math.abs(shownValue(column, id));
      if (size > most) most = size;
    }
  }
  return most;
}

function barOf(
  value: number,
  scale: number,
  signed: boolean,
  colour: string,
  [less, more]: readonly [string, string],
): CellBar | null {
  if (!Number.isFinite(value) || value === 0 || scale === 0) return null;
  const share = value / scale;
  if (!signed) return { from: 0, to: Math.max(share, 0), colour };
  return share < 0
    ? { from: 0.5 + share / 2, to: 0.5, colour: less }
    : { from: 0.5, to: 0.5 + share / 2, colour: more };
}

/** Why a module has no number here, or every digit of it. */
function titleOf({ data }: ColumnsInput, column: BytesColumn, id: number): string {
  const { bytes, baseline } = column;
  const value = bytes[id] ?? NaN;
  if (data.numCalls[id] === 0) {
    return `This module was never at “${STATE_WORDS[data.state]}” in this step: a list of modules does not run by itself. At the peak every module has a number.`;
  }
  if (baseline === null) return formatExact(value, "bytes");
  const other = baseline[id] ?? NaN;
  const words =
    data.baseline === null ? "" : baselineWords(data.baseline, data.windows);
  if (!Number.isFinite(other)) {
    return `${formatExact(value, "bytes")}; ${words} has no such module or state`;
  }
  const difference = formatSignedExact(value - other, "bytes");
  return `${difference}: ${formatExact(value, "bytes")}, against ${formatExact(other, "bytes")} (${words})`;
}

export function moduleColumns(input: ColumnsInput): readonly TreeColumn[] {
  const { data, bytes, theme, byteUnit } = input;
  const signed = data.baseline !== null;
  const scale = scaleOf(bytes);
  // Of all categories in their fixed order: as the timeline below has them.
  const colours = categoryColours(theme, data.categories);
  const swatches = new Map(data.categories.map(({ name }, i) => [name, colours[i]]));
  const diverging = divergingColours(theme);
  const columns = bytes.map((column): TreeColumn => {
    const swatch = swatches.get(column.key) ?? null;
    const title = inTwoLines(signed ? `Δ\u00a0${column.title}` : column.title);
    const colour = swatch ?? categoryColour(theme, "unknown");
    return {
      key: column.key,
      title,
      hint: HINTS.get(column.key) ?? hintOf(data),
      ...(swatch === null ? {} : { swatch }),
      numeric: true,
      minWidthPx: Math.max(LEAST_PX, headingWidth(title, swatch !== null)),
      cell: (id) => {
        const value = shownValue(column, id);
        const bar = barOf(value, scale, signed, colour, diverging);
        const text = signed
          ? formatSigned(value, "bytes", byteUnit)
          : formatQuantity(value, "bytes", byteUnit);
        return {
          text,
          title: titleOf(input, column, id),
          ...(value === 0 || Number.isNaN(value) ? { tone: "quiet" as const } : {}),
          ...(bar === null ? {} : { bar }),
        };
      },
    };
  });
  return [moduleColumn(input), ...columns, ...callColumns(input)];
}

function hintOf(data: ModulesResponse): string {
  return data.measure === "held"
    ? "Of this category, with all modules below"
    : "The rank’s total of this category at the module’s moment";
}

function moduleColumn({ modules, flat }: ColumnsInput): TreeColumn {
  return {
    key: "module",
    title: "Module",
    hint: "A click on a row opens its details",
    numeric: false,
    minWidthPx: flat ? 320 : 240,
    isTree: true,
    cell: (id): Cell => {
      const fsdp = modules.isFsdp(id) ? "FSDP · " : "";
      const name = flat ? modules.fqn(id) : modules.label(id);
      const [layer = id] =
        flat || modules.numEqual(id) === 0 ? [] : modules.tree.children(id);
      const type = modules.type(layer);
      return {
        text: name,
        note: type === name ? fsdp.replace(" · ", "") : `${fsdp}${type}`,
        title: modules.fqn(id),
      };
    },
  };
}

/** Which call of a module is shown, where any was called more than once. */
function callColumns({ data }: ColumnsInput): readonly TreeColumn[] {
  if (data.maxCalls <= 1) return [];
  return [
    {
      key: "call",
      title: "Call",
      hint: "Which call of the module is shown, and how many there were",
      numeric: true,
      sortable: false,
      minWidthPx: LEAST_PX,
      cell: (id) => {
        const num = data.numCalls[id] ?? 0;
        const shown = data.callShown[id] ?? -1;
        if (shown < 0 || num === 0) return { text: "–", tone: "quiet" };
        return { text: `${formatInteger(shown + 1)} of ${formatInteger(num)}` };
      },
    },
  ];
}
