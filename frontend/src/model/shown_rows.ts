/** Sorting by a click on a heading, kept in the URL. Pure. */

export interface Sort {
  readonly key: string;
  readonly descending: boolean;
}

/** What is sorted by: numbers or texts, by row. */
export type SortValues = ArrayLike<number> | readonly string[];

/** Rows of columns in order; numbers that are not known come last. */
export function sortedRows(
  numRows: number,
  values: SortValues | undefined,
  descending: boolean,
): readonly number[] {
  const rows = Array.from({ length: numRows }, (_, row) => row);
  return values === undefined ? rows : rows.sort(orderBy(values, descending));
}

const { compare } = new Intl.Collator(undefined, { numeric: true });

/** Compares two rows; those that are not known stand last either way, equal ones as they came. */
export function orderBy(
  values: SortValues,
  descending: boolean,
): (a: number, b: number) => number {
  const sign = descending ? -1 : 1;
  return (a, b) => {
    const [x, y] = [values[a], values[b]];
    if (typeof x === "string" && typeof y === "string") {
      return sign * compare(x, y) || a - b;
    }
    const [p, q] = [Number(x), Number(y)];
    if (Number.isNaN(p) || Number.isNaN(q)) {
      return Number(Number.isNaN(p)) - Number(Number.isNaN(q)) || a - b;
    }
    return sign * (p - q) || a - b;
  };
}

/** Whether a line holds every word that was typed; null where nothing was. */
export function searchOf(typed: string): ((line: string) => boolean) | null {
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return null;
  return (line) => words.every((word) => line.toLowerCase().includes(word));
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
