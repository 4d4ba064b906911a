import { API_VERSION } from "./types.gen";

type Column = Float64Array | Int32Array | Uint16Array | Uint8Array;

function dtypeOf(column: Column): string {
  if (column instanceof Float64Array) return "f64";
  if (column instanceof Int32Array) return "i32";
  return column instanceof Uint16Array ? "u16" : "u8";
}

/** As the server packs it: differences, and byte by byte of all elements. */
function planesOf(column: Column): Uint8Array {
  const whole = column.slice();
  if (!(whole instanceof Float64Array)) {
    for (let i = whole.length - 1; i > 0; i -= 1) {
      whole[i] = (whole[i] ?? 0) - (whole[i - 1] ?? 0);
    }
  }
  const bytes = new Uint8Array(whole.buffer);
  const width = column.BYTES_PER_ELEMENT;
  return bytes.map((_, index) => {
    const plane = Math.floor(index / column.length);
    return bytes[(index % column.length) * width + plane] ?? 0;
  });
}

export function envelope(
  response: string,
  data: unknown,
  columns: readonly Column[] = [],
  version = API_VERSION,
  packed = false,
): ArrayBuffer {
  // Offsets depend on the header's length, so it is padded for long ones.
  const header = (offsets: readonly number[]): string =>
    JSON.stringify({
      api_version: version,
      response,
      data,
      columns: columns.map((column, i) => ({
        dtype: `${packed ? "packed_" : ""}${dtypeOf(column)}`,
        offset: offsets[i] ?? 0,
        length: column.length,
      })),
    });
  const room = new TextEncoder().encode(header(columns.map(() => 1e9))).length;
  const headerLength = Math.ceil((room + 4) / 8) * 8 - 4;
  let end = 4 + headerLength;
  const offsets = columns.map((column) => {
    const offset = end;
    end += Math.ceil(column.byteLength / 8) * 8;
    return offset;
  });
  const body = new Uint8Array(end).fill(0);
  new DataView(body.buffer).setUint32(0, headerLength, true);
  body.set(new TextEncoder().encode(header(offsets).padEnd(headerLength)), 4);
  columns.forEach((column, i) =>
    body.set(packed ? planesOf(column) : new Uint8Array(column.buffer), offsets[i]),
  );
  return body.buffer;
}

export function runsBody(pluginVersion = "1", version = API_VERSION): ArrayBuffer {
  const data = { logdirs: ["runs"], runs: [], foreign: [], problems: [] };
  const whole = { ...data, plugin_version: pluginVersion, drop_limit_bytes: 0 };
  return envelope("RunsResponse", whole, [], version);
}
