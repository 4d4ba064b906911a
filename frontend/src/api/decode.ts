/**
 * Layout: `tb_plugin/contract/wire.py`; equal versions mean the fields of
 * `types.gen.ts`.
 */

import { ApiError } from "./api_error";
import { API_VERSION, type Responses } from "./types.gen";

type Fields = Readonly<Record<string, unknown>>;

const REPORT = "Reload the page. If it comes back, please report it with this text.";

/**
 * A large answer is unpacked in parts of about this length: no frame waits for all of
 * it.
 */
const PART_MS = 8;

/** `where` is named in errors: the route, unless a file was requested. */
export async function decode<R extends keyof Responses>(
  route: R,
  body: ArrayBuffer,
  where: string = route,
): Promise<Responses[R]> {
  try {
    return await answerIn(route, body, where);
  } catch (error) {
    if (error instanceof ApiError) throw error;
    const why = error instanceof Error ? error.message : String(error);
    throw new ApiError(`The answer cannot be read: ${why}`, where, REPORT, "decode");
  }
}

async function answerIn<R extends keyof Responses>(
  route: R,
  body: ArrayBuffer,
  where: string,
): Promise<Responses[R]> {
  const length = new DataView(body).getUint32(0, true);
  const json = new TextDecoder().decode(new Uint8Array(body, 4, length));
  const header = JSON.parse(json) as Fields;
  const version = header["api_version"];
  if (typeof version === "number" && version !== API_VERSION) {
    throw new ApiError(
      `The server speaks version ${version}, this page version ${API_VERSION}.`,
      where,
      "MemBoard was updated while this page was open: reload the page. If that does not help, restart TensorBoard.",
      "version",
    );
  }
  // `step_heatmap` is answered by a `StepHeatmapResponse`.
  const expected = `${camel(`_${route}`)}Response`;
  const name = header["response"];
  if (name !== expected)
    throw new Error(`expected a ${expected}, the server sent a ${String(name)}.`);
  const columns = await columnsOf(header["columns"] as ColumnHeader[], body);
  const data = typed(header["data"], columns);
  if (!isRecord(data)) throw new Error("it has no data.");
  // Sound because both ends have the same version, and the answer is of this route.
  return data as unknown as Responses[R];
}

const camelNames = new Map<string, string>();

function camel(name: string): string {
  let camelName = camelNames.get(name);
  if (camelName === undefined) {
    camelName = name.replace(/_./g, (part) => part.slice(1).toUpperCase());
    camelNames.set(name, camelName);
  }
  return camelName;
}

function isRecord(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

type Column = Float64Array | Int32Array | Uint16Array | Uint8Array;

/** Names in camelCase, and columns in place of `{"$column": index}`. */
function typed(value: unknown, columns: readonly Column[]): unknown {
  if (Array.isArray(value)) return value.map((item: unknown) => typed(item, columns));
  if (!isRecord(value)) return value;
  const index = value["$column"];
  if (index !== undefined) {
    const columnIndex = Number(index);
    const column = columns[columnIndex];
    if (column === undefined) throw new Error(`column ${columnIndex} was not sent.`);
    return column;
  }
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [camel(name), typed(item, columns)]),
  );
}

const PACKED = "packed_";
const ARRAYS = {
  f64: Float64Array,
  i32: Int32Array,
  u16: Uint16Array,
  u8: Uint8Array,
} as const;

/** `packed_`: the first bytes of all elements, then all second ones, and so on. */
interface ColumnHeader {
  readonly dtype: string;
  readonly offset: number;
  readonly length: number;
}

async function columnsOf(described: readonly ColumnHeader[], body: ArrayBuffer) {
  const leaves = described.some(({ dtype }) => dtype.startsWith(PACKED));
  const columns: Column[] = [];
  let begun = performance.now();
  for (const { dtype, offset, length } of described) {
    if (performance.now() - begun > PART_MS) {
      await new Promise((resolve) => setTimeout(resolve));
      begun = performance.now();
    }
    const type = ARRAYS[dtype.replace(PACKED, "") as keyof typeof ARRAYS];
    const width = type.BYTES_PER_ELEMENT;
    if (dtype.startsWith(PACKED)) {
      const planes = new Uint8Array(body, offset, length * width);
      const values = new type(unpacked(planes, width, length));
      columns.push(values instanceof Float64Array ? values : summed(values));
    } else if (leaves) {
      // Copied, so that a body whose long columns were unpacked can be freed.
      columns.push(new type(body.slice(offset, offset + length * width)));
    } else columns.push(new type(body, offset, length));
  }
  return columns;
}

function unpacked(planes: Uint8Array, width: number, length: number): ArrayBuffer {
  // Whole words first: byte by byte is the slowest part of a large answer.
  const wide = Math.min(width, 4);
  const WordArray =
    { 1: Uint8Array, 2: Uint16Array, 4: Uint32Array }[wide] ?? Uint8Array;
  const whole = new WordArray((length * width) / wide);
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
  return whole.buffer;
}

/** In place; sums wrap around as the differences did. */
function summed<T extends Int32Array | Uint16Array | Uint8Array>(values: T): T {
  for (let i = 1; i < values.length; i += 1) {
    values[i] = (values[i] ?? 0) + (values[i - 1] ?? 0);
  }
  return values;
}
