export interface Sort {
  readonly key: string;
  readonly descending: boolean;
}

export type SortValues = ArrayLike<number> | readonly string[];

/** Unknown numbers come last. */
export function sortedRows(
  numRows: number,
  values: SortValues | undefined,
  descending: boolean,
): readonly number[] {
  const rows = Array.from({ length: numRows }, (_, row) => row);
  return values === undefined ? rows : rows.sort(orderBy(values, descending));
}

const { compare } = new Intl.Collator(undefined, { numeric: true });

/** Unknown ones come last either way; equal ones keep their order. */
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

/** Matches lines with every word typed; null: nothing typed. */
export function searchOf(typed: string): ((line: string) => boolean) | null {
  const typedWords = typed.toLowerCase().split(/\s+/).filter(Boolean);
  if (typedWords.length === 0) return null;
  return (line) => typedWords.every((word) => line.toLowerCase().includes(word));
}

/** Texts begin at A, numbers with the largest. */
export function clicked(sort: Sort, key: string, isText: boolean): Sort {
  if (sort.key === key) return { key, descending: !sort.descending };
  return { key, descending: !isText };
}

/** `total_ms`, `-total_ms`: as a word of the URL; "" for the default. */
export function sortWord(sort: Sort, usual: Sort): string | null {
  if (sort.key === usual.key && sort.descending === usual.descending) return null;
  return `${sort.descending ? "" : "-"}${sort.key}`;
}

/** `usual` where the parameter names none of `keys`. */
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
