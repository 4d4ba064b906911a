/**
 * Bytes of a response -> its typed form, or a `DecodeError` that says what is wrong.
 * The layout is described in `tb_plugin/contract/wire.py`. Both ends ship together:
 * where their versions agree, the header has the fields that `types.gen.ts` declares.
 */

import { API_VERSION, type Responses } from "./types.gen";

/** The body cannot be read. */
export class DecodeError extends Error {
  override readonly name = "DecodeError";
  constructor(
    message: string,
    /** version: the page and the server come from different ones. */
    readonly kind: "decode" | "version" = "decode",
    readonly remedy = "Reload the page. If it comes back, please report it with this text.",
  ) {
    super(message);
  }
}

type Fields = Readonly<Record<string, unknown>>;

export function decode<R extends keyof Responses>(
  route: R,
  body: ArrayBuffer,
): Responses[R] {
  const header = readHeader(body);
  const version = header["api_version"];
  if (typeof version !== "number") throw new DecodeError("The answer has no version.");
  if (version !== API_VERSION) {
    throw new DecodeError(
      `The server speaks version ${version}, this page version ${API_VERSION}.`,
      "version",
      "MemBoard was updated while this page was open: reload the page. If that does not help, restart TensorBoard.",
    );
  }
  // `step_heatmap` is answered by a `StepHeatmapResponse`.
  const expected = `${camel(`_${route}`)}Response`;
  const name = header["response"];
  if (name !== expected) {
    throw new DecodeError(`Expected a ${expected}, the server sent a ${String(name)}.`);
  }
  const data = typed(header["data"], columnsOf(header["columns"], body));
  if (!isRecord(data)) throw new DecodeError(`The answer of “${route}” has no data.`);
  // Sound because both ends have the same version, and the answer is of this route.
  return data as unknown as Responses[R];
}

/** The same few names stand in every row of an answer. */
const camelNames = new Map<string, string>();

/** `peak_bytes` -> `peakBytes`. */
function camel(name: string): string {
  let found = camelNames.get(name);
  if (found === undefined) {
    found = name.replace(/_./g, (part) => part.slice(1).toUpperCase());
    camelNames.set(name, found);
  }
  return found;
}

function isRecord(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function readHeader(body: ArrayBuffer): Fields {
  if (body.byteLength < 4) {
    throw new DecodeError(`The answer holds only ${body.byteLength} bytes.`);
  }
  const length = new DataView(body).getUint32(0, true);
  if (length > body.byteLength - 4) {
    throw new DecodeError(
      `The answer was cut off: its header needs ${length} bytes, ` +
        `${body.byteLength - 4} arrived.`,
    );
  }
  const json = new TextDecoder().decode(new Uint8Array(body, 4, length));
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    throw new DecodeError("The answer's header is not JSON.");
  }
  if (!isRecord(value)) throw new DecodeError("The answer's header is no object.");
  return value;
}

type Column = Float64Array | Int32Array | Uint16Array | Uint8Array;

/** Names in camelCase, and columns in place of `{"$column": index}`. */
function typed(value: unknown, columns: readonly Column[]): unknown {
  if (Array.isArray(value)) return value.map((item: unknown) => typed(item, columns));
  if (!isRecord(value)) return value;
  const index = value["$column"];
  if (index !== undefined) {
    const column = typeof index === "number" ? columns[index] : undefined;
    if (column === undefined) {
      throw new DecodeError(`Column ${JSON.stringify(index)} was not sent.`);
    }
    return column;
  }
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [camel(name), typed(item, columns)]),
  );
}

type Entry = ReturnType<typeof entryOf>;

const PACKED = "packed_";
const ARRAYS = {
  f64: Float64Array,
  i32: Int32Array,
  u16: Uint16Array,
  u8: Uint8Array,
} as const;

function isSize(value: unknown): value is number {
  return typeof value === "number" && Number.isInteger(value) && value >= 0;
}

function columnsOf(value: unknown, body: ArrayBuffer): readonly Column[] {
  if (!Array.isArray(value)) throw new DecodeError("The answer lists no columns.");
  const entries = value.map((one, i) => entryOf(one, i, body));
  const leaves = entries.some(({ packed }) => packed);
  return entries.map((entry): Column => {
    const values = new entry.type(...memoryOf(entry, body, leaves));
    const isSummed = entry.packed && !(values instanceof Float64Array);
    return isSummed ? summed(values) : values;
  });
}

/** `packed`: the first bytes of all elements come before all second ones, and so on. */
function entryOf(value: unknown, i: number, body: ArrayBuffer) {
  const { dtype, offset, length } = isRecord(value) ? value : {};
  if (typeof dtype !== "string" || !isSize(offset) || !isSize(length)) {
    throw new DecodeError(`Column ${i} of the answer is not described.`);
  }
  const name = dtype.replace(PACKED, "");
  if (!Object.hasOwn(ARRAYS, name)) {
    throw new DecodeError(`Column ${i} of the answer is of type ${dtype}.`);
  }
  const type = ARRAYS[name as keyof typeof ARRAYS];
  const width = type.BYTES_PER_ELEMENT;
  if (offset % 8 !== 0 || offset + length * width > body.byteLength)
    throw new DecodeError(`Column ${i} of the answer did not arrive whole.`);
  return { type, width, packed: dtype.startsWith(PACKED), offset, length };
}

/**
 * Where a column's elements lie: in the body itself or, unpacked, beside it. A body of
 * which the long columns were unpacked is let go of: short ones leave it too.
 */
function memoryOf(
  { packed, width, offset, length }: Entry,
  body: ArrayBuffer,
  leaves: boolean,
): readonly [ArrayBuffer, number, number] {
  if (!packed && leaves) {
    return [body.slice(offset, offset + length * width), 0, length];
  }
  if (!packed) return [body, offset, length];
  const planes = new Uint8Array(body, offset, length * width);
  // Words at once: byte by byte it is what a large answer takes longest for.
  const wide = Math.min(width, 4);
  const words = { 1: Uint8Array, 2: Uint16Array, 4: Uint32Array }[wide] ?? Uint8Array;
  const whole = new words((length * width) / wide);
  const step = width / wide;
  for (let part = 0; part < step; part += 1) {
    const first = part * wide * length;
    for (let i = 0; i < length; i += 1) {
      let word = planes[first + i] ?? 0;
      for (let plane = 1; plane < wide; plane += 1) {
        word |= (planes[first + plane * length + i] ?? 0) << (8 * plane);
      }
      whole[i * step + part] = word;
    }
  }
  return [whole.buffer, 0, length];
}

/** Running sums in place, which go round as the differences did. */
function summed<T extends Int32Array | Uint16Array | Uint8Array>(values: T): T {
  for (let i = 1; i < values.length; i += 1) {
    values[i] = (values[i] ?? 0) + (values[i - 1] ?? 0);
  }
  return values;
}
