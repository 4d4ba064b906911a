/**
 * Bytes of a response -> its typed form, or a `DecodeError` that says what is wrong.
 * The layout is described at the top of `tb_plugin/api`.
 */

import { record, ShapeError, text, integer, type Columns, type Fields } from "./check";
import { routes } from "./readers.gen";
import { API_VERSION, type Responses } from "./types.gen";

/** The body cannot be read. */
export class DecodeError extends Error {
  override readonly name: string = "DecodeError";
}

/** The page and the server come from different versions: only a reload helps. */
export class VersionError extends DecodeError {
  override readonly name = "VersionError";
  constructor(readonly serverVersion: number) {
    super(
      `The server speaks version ${serverVersion}, this page version ${API_VERSION}.`,
    );
  }
}

export function decode<R extends keyof Responses>(
  route: R,
  body: ArrayBuffer,
): Responses[R] {
  try {
    const header = readHeader(body);
    const version = integer(header["api_version"], "api_version", noColumns);
    if (version !== API_VERSION) throw new VersionError(version);
    const response = responseOf(route);
    const name = text(header["response"], "response", noColumns);
    if (name !== response) {
      throw new DecodeError(`Expected a ${response}, the server sent a ${name}.`);
    }
    return routes[route](header["data"], response, columnsOf(header["columns"], body));
  } catch (error) {
    if (error instanceof ShapeError) {
      throw new DecodeError(`The answer of “${route}” is malformed: ${error.message}.`);
    }
    throw error;
  }
}

/** `step_heatmap` is answered by a `StepHeatmapResponse`. */
function responseOf(route: string): string {
  const words = route.replace(/(?:^|_)[a-z]/g, (start) =>
    start.slice(-1).toUpperCase(),
  );
  return `${words}Response`;
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
  return record(value, "header");
}

interface Entry {
  readonly dtype: string;
  /** The first bytes of all elements come before all second ones, and so on. */
  readonly packed: boolean;
  readonly offset: number;
  readonly length: number;
}

const PACKED = "packed_";

const noColumns: Columns = columnsOf([], new ArrayBuffer(0));

function columnsOf(value: unknown, body: ArrayBuffer): Columns {
  if (!Array.isArray(value)) throw new ShapeError("columns", "a list");
  const entries = value.map((item: unknown, i): Entry => {
    const fields = record(item, `columns[${i}]`);
    const dtype = text(fields["dtype"], `columns[${i}].dtype`, noColumns);
    const packed = dtype.startsWith(PACKED);
    return {
      dtype: packed ? dtype.slice(PACKED.length) : dtype,
      packed,
      offset: integer(fields["offset"], `columns[${i}].offset`, noColumns),
      length: integer(fields["length"], `columns[${i}].length`, noColumns),
    };
  });
  const leaves = entries.some(({ packed }) => packed);
  const take = (dtype: string, width: number, index: number, at: string): Entry => {
    const entry = entries[index];
    if (entry === undefined) throw new ShapeError(at, "a column that was sent");
    if (entry.dtype !== dtype) {
      throw new ShapeError(at, `a column of ${dtype}, not ${entry.dtype}`);
    }
    const end = entry.offset + entry.length * width;
    if (entry.offset % 8 !== 0 || entry.offset < 0 || entry.length < 0) {
      throw new ShapeError(at, "a column that starts at a multiple of 8");
    }
    if (end > body.byteLength) throw new ShapeError(at, "a column that arrived whole");
    return entry;
  };
  return {
    f64: (index, at) => {
      const entry = take("f64", 8, index, at);
      return new Float64Array(...memoryOf(entry, 8, body, leaves));
    },
    i32: (index, at) => {
      const entry = take("i32", 4, index, at);
      const values = new Int32Array(...memoryOf(entry, 4, body, leaves));
      return entry.packed ? summed(values) : values;
    },
    u16: (index, at) => {
      const entry = take("u16", 2, index, at);
      const values = new Uint16Array(...memoryOf(entry, 2, body, leaves));
      return entry.packed ? summed(values) : values;
    },
    u8: (index, at) => {
      return new Uint8Array(...memoryOf(take("u8", 1, index, at), 1, body, leaves));
    },
  };
}

/**
 * Where a column's elements lie: in the body itself or, unpacked, beside it. A body of
 * which the long columns were unpacked is let go of: short ones leave it too.
 */
function memoryOf(
  { packed, offset, length }: Entry,
  width: number,
  body: ArrayBuffer,
  leaves: boolean,
): readonly [ArrayBuffer, number, number] {
  if (!packed && leaves) {
    return [body.slice(offset, offset + length * width), 0, length];
  }
  if (!packed) return [body, offset, length];
  const planes = new Uint8Array(body, offset, length * width);
  const whole = new Uint8Array(length * width);
  for (let plane = 0, at = 0; plane < width; plane += 1) {
    for (let to = plane; to < whole.length; to += width, at += 1) {
      whole[to] = planes[at] ?? 0;
    }
  }
  return [whole.buffer, 0, length];
}

/** Running sums in place, which go round as the differences did. */
function summed<T extends Int32Array | Uint16Array>(values: T): T {
  for (let i = 1; i < values.length; i += 1) {
    values[i] = (values[i] ?? 0) + (values[i - 1] ?? 0);
  }
  return values;
}
