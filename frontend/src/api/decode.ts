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
    const { response, read } = routes[route];
    const name = text(header["response"], "response", noColumns);
    if (name !== response) {
      throw new DecodeError(`Expected a ${response}, the server sent a ${name}.`);
    }
    return read(header["data"], response, columnsOf(header["columns"], body));
  } catch (error) {
    if (error instanceof ShapeError) {
      throw new DecodeError(`The answer of “${route}” is malformed: ${error.message}.`);
    }
    throw error;
  }
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
  readonly offset: number;
  readonly length: number;
}

const noColumns: Columns = columnsOf([], new ArrayBuffer(0));

function columnsOf(value: unknown, body: ArrayBuffer): Columns {
  if (!Array.isArray(value)) throw new ShapeError("columns", "a list");
  const entries = value.map((item: unknown, i): Entry => {
    const fields = record(item, `columns[${i}]`);
    return {
      dtype: text(fields["dtype"], `columns[${i}].dtype`, noColumns),
      offset: integer(fields["offset"], `columns[${i}].offset`, noColumns),
      length: integer(fields["length"], `columns[${i}].length`, noColumns),
    };
  });
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
      const { offset, length } = take("f64", 8, index, at);
      return new Float64Array(body, offset, length);
    },
    i32: (index, at) => {
      const { offset, length } = take("i32", 4, index, at);
      return new Int32Array(body, offset, length);
    },
    u16: (index, at) => {
      const { offset, length } = take("u16", 2, index, at);
      return new Uint16Array(body, offset, length);
    },
    u8: (index, at) => {
      const { offset, length } = take("u8", 1, index, at);
      return new Uint8Array(body, offset, length);
    },
  };
}
