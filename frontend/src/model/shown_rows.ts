/** Sorting by a click on a heading, kept in the URL. Pure. */

export interface Sort {
  readonly key: string;
  readonly descending: boolean;
}

/** Rows of columns in order; numbers that are not known come last. */
export function sortedRows(
  numRows: number,
  values: ArrayLike<number> | readonly string[] | undefined,
  descending: boolean,
): readonly number[] {
  const rows = Array.from({ length: numRows }, (_, row) => row);
  if (values === undefined) return rows;
  const sign = descending ? -1 : 1;
  return rows.sort((a, b) => {
    const [x, y] = [values[a], values[b]];
    if (typeof x === "string" && typeof y === "string")
      return sign * x.localeCompare(y);
    const [p, q] = [Number(x), Number(y)];
    if (Number.isNaN(p) || Number.isNaN(q)) {
      return Number(Number.isNaN(p)) - Number(Number.isNaN(q)) || a - b;
    }
    return sign * (p - q) || a - b;
  });
}

/** The order after a click: texts begin at A, numbers with the largest. */
export function clicked(sort: Sort, key: string, isText: boolean): Sort {
  if (sort.key === key) return { key, descending: !sort.descending };
  return { key, descending: !isText };
}

/** `total_ms`, `-total_ms`: as a word of the URL; "" for the default. */
export function sortWord(sort: Sort, usual: Sort): string | null {
  if (sort.key === usual.key && sort.descending === usual.descending) return null;
  return `${sort.descending ? "" : "-"}${sort.key}`;
}

/**
 * The same for a route that sorts, by its own words, or by those of `columns`' keys; null
 * for its own order.
 */
export function routeSort(
  word: string | undefined,
  columns: ReadonlyMap<string, string> | readonly string[],
): string | null {
  const words = "get" in columns ? columns : new Map(columns.map((one) => [one, one]));
  const usual = { key: "", descending: true };
  const { key, descending } = sortOf(word, [...words.keys()], usual);
  const column = words.get(key);
  return column === undefined ? null : `${descending ? "" : "-"}${column}`;
}

/** The order a word of the URL says; the usual one where it says none of `keys`. */
export function sortOf(
  word: string | undefined,
  keys: readonly string[],
  usual: Sort,
): Sort {
  const ascending = word?.startsWith("-") ?? false;
  const key = ascending ? word?.slice(1) : word;
  if (key === undefined || !keys.includes(key)) return usual;
  return { key, descending: !ascending };
}
