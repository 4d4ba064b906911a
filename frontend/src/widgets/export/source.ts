/** What can be exported, and as which files. Pure. */

import { unrealWord, type Origin } from "../../model/words/origin";
import type { Table } from "../../model/table";
import { toCsv, toJson } from "./csv";

export interface Figure {
  readonly svg: string;
  readonly widthPx: number;
  readonly heightPx: number;
}

export interface ExportSource {
  readonly origin: Origin;
  /** What it is; names the files together with the run. */
  readonly name: string;
  readonly table: () => Table;
  /** Facts that stand beside the columns in JSON. */
  readonly about: () => Readonly<Record<string, unknown>>;
  /** Absent or null where there is nothing to draw, as for tables. */
  readonly figure?: (() => Figure) | null;
}

/** The files' name, without extension. */
export function fileStem({ origin, name }: ExportSource): string {
  const { run, unreal } = origin;
  return `${run} ${name}${unreal === null ? "" : ` ${unrealWord(unreal)}`}`;
}

/** Rows travel without their file's name, so each says it where data are not real. */
export function exportCsv({ origin, table }: ExportSource): string {
  const { numRows, columns } = table();
  if (origin.unreal === null) return toCsv({ numRows, columns });
  const name = unrealWord(origin.unreal);
  const unreal = { name, values: new Uint8Array(numRows).fill(1) };
  return toCsv({ numRows, columns: [...columns, unreal] });
}

export function exportJson({ origin, table, about }: ExportSource): string {
  const { run, unreal } = origin;
  return toJson(table(), {
    run,
    simulated: unreal === "simulated data",
    virtual_gpu: unreal === "virtual GPU",
    ...about(),
  });
}
