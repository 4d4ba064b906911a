/**
 * The readers' building blocks: each takes a value nobody has looked at yet, says where
 * it stands, and returns it typed or throws a `ShapeError` naming the place. `unknown`
 * ends here; nothing behind the decoder checks again.
 */

/** The body does not hold what the contract says; `at` is the path of the culprit. */
export class ShapeError extends Error {
  override readonly name = "ShapeError";
  constructor(
    readonly at: string,
    readonly expected: string,
  ) {
    super(`${at}: expected ${expected}`);
  }
}

/** The columns of a body, by index; see `decode.ts`. */
export interface Columns {
  readonly f64: (index: number, at: string) => Float64Array<ArrayBuffer>;
  readonly i32: (index: number, at: string) => Int32Array<ArrayBuffer>;
  readonly u16: (index: number, at: string) => Uint16Array<ArrayBuffer>;
  readonly u8: (index: number, at: string) => Uint8Array<ArrayBuffer>;
}

export type Read<T> = (value: unknown, at: string, columns: Columns) => T;

export type Fields = Readonly<Record<string, unknown>>;

function isRecord(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function record(value: unknown, at: string): Fields {
  if (!isRecord(value)) throw new ShapeError(at, "an object");
  return value;
}

/** `peakBytes` is `peak_bytes` on the wire. */
export function wireName(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** An object with these fields, and maybe others. */
export function shape<T>(readers: { readonly [K in keyof T]: Read<T[K]> }): Read<T> {
  const fields = Object.entries<Read<unknown>>(readers).map(
    ([name, read]) => [name, wireName(name), read] as const,
  );
  return (value, at, columns) => {
    const sent = record(value, at);
    const taken = fields.map(([name, wire, read]) => {
      const place = `${at}.${wire}`;
      if (!Object.hasOwn(sent, wire)) throw new ShapeError(place, "a value");
      return [name, read(sent[wire], place, columns)] as const;
    });
    // Every field of T was read by its own reader.
    return Object.fromEntries(taken) as T;
  };
}

export const text: Read<string> = (value, at) => {
  if (typeof value !== "string") throw new ShapeError(at, "text");
  return value;
};

export const number: Read<number> = (value, at) => {
  if (typeof value !== "number") throw new ShapeError(at, "a number");
  return value;
};

export const integer: Read<number> = (value, at) => {
  if (typeof value !== "number" || !Number.isInteger(value)) {
    throw new ShapeError(at, "an integer");
  }
  return value;
};

export const flag: Read<boolean> = (value, at) => {
  if (typeof value !== "boolean") throw new ShapeError(at, "true or false");
  return value;
};

export function word<const T extends string>(...words: readonly T[]): Read<T> {
  return (value, at) => {
    const found = words.find((candidate) => candidate === value);
    if (found === undefined) throw new ShapeError(at, `one of ${words.join(", ")}`);
    return found;
  };
}

export function orNull<T>(read: Read<T>): Read<T | null> {
  return (value, at, columns) => (value === null ? null : read(value, at, columns));
}

export function list<T>(read: Read<T>): Read<readonly T[]> {
  return (value, at, columns) => {
    if (!Array.isArray(value)) throw new ShapeError(at, "a list");
    return value.map((item: unknown, i) => read(item, `${at}[${i}]`, columns));
  };
}

function columnIndex(value: unknown, at: string): number {
  const index = record(value, at)["$column"];
  if (typeof index !== "number" || !Number.isInteger(index)) {
    throw new ShapeError(at, "a column");
  }
  return index;
}

export const f64Column: Read<Float64Array<ArrayBuffer>> = (value, at, columns) =>
  columns.f64(columnIndex(value, at), at);
export const i32Column: Read<Int32Array<ArrayBuffer>> = (value, at, columns) =>
  columns.i32(columnIndex(value, at), at);
export const u16Column: Read<Uint16Array<ArrayBuffer>> = (value, at, columns) =>
  columns.u16(columnIndex(value, at), at);
export const u8Column: Read<Uint8Array<ArrayBuffer>> = (value, at, columns) =>
  columns.u8(columnIndex(value, at), at);
