import { describe, expect, it } from "vitest";
import { ApiError } from "./api_error";
import { decode } from "./decode";
import { envelope, runsBody } from "./test_bodies";
import { API_VERSION } from "./types.gen";

const RUN = {
  id: "r1",
  name: "<script>alert(1)</script>",
  num_ranks: 2,
  world_size: 2,
  num_attempts: 1,
  first_ms: 1,
  last_ms: 2.5,
  last_step: null,
  live: true,
  simulated: false,
  virtual_gpu: "",
  imported: false,
  made_of: "recording",
  device_type: "cuda",
  num_problems: 0,
};

const HOST = {
  run: RUN,
  rank: 0,
  hosts: ["a"],
  num_hosts: 1,
  x: "step",
  x_low: 0,
  x_high: 2,
  tracks: [
    {
      key: "cpu",
      unit: "percent",
      limit: null,
      lines: [
        {
          name: "cpu_user_pct",
          rank: 0,
          host: "a",
          x: { $column: 0 },
          y: { $column: 1 },
          y_low: { $column: 1 },
        },
      ],
    },
  ],
  absent: [],
  marks: [],
};

const COLUMNS = [new Float64Array([0, 1, 2]), new Float64Array([5, Number.NaN, 7])];

describe("decode", () => {
  it("turns names into camelCase, columns into views, and keeps NaN", async () => {
    const host = await decode("host", envelope("HostResponse", HOST, COLUMNS));
    const line = host.tracks[0]?.lines[0];
    expect(host.xHigh).toBe(2);
    expect(host.run.lastStep).toBeNull();
    expect(host.run.name).toBe("<script>alert(1)</script>");
    expect([...(line?.x ?? [])]).toEqual([0, 1, 2]);
    expect(line?.y[1]).toBeNaN();
    // Views of the one body: nothing is copied.
    expect(line?.x.buffer).toBe(line?.yLow.buffer);
  });

  it("passes on what it does not know", async () => {
    const more = { ...HOST, added_tomorrow: 1 };
    expect((await decode("host", envelope("HostResponse", more, COLUMNS))).rank).toBe(
      0,
    );
  });

  it("unpacks long columns bit by bit", async () => {
    const data = {
      device: 0,
      moment: { $column: 0 },
      stack: { $column: 1 },
      column: { $column: 2 },
      slot: { $column: 2 },
      change: { $column: 3 },
      allocated: { $column: 3 },
    };
    const columns = [
      new Int32Array([5, -1, 2 ** 31 - 1, -(2 ** 31), 0]),
      new Int32Array(0),
      new Uint16Array([65535, 0, 7, 6]),
      new Float64Array([Number.NaN, -0, 1e300, 5]),
    ] as const;
    const name = "AllocationHoldersResponse";
    const body = envelope(name, data, columns, API_VERSION, true);
    const holders = await decode("allocation_holders", body);
    expect(holders.moment).toEqual(columns[0]);
    expect(holders.stack).toEqual(columns[1]);
    expect(holders.column).toEqual(columns[2]);
    expect(holders.change).toEqual(columns[3]);
    expect(Object.is(holders.change[1], -0)).toBe(true);
    // A column that lay in the body would keep all of it, for as long as a tile lives.
    const decoded = [holders.moment, holders.stack, holders.column, holders.change];
    for (const { buffer, byteLength } of decoded)
      expect(buffer.byteLength).toBe(byteLength);
    for (let length = 0; length < body.byteLength; length += 1) {
      await expect(decode("allocation_holders", body.slice(0, length))).rejects.toThrow(
        ApiError,
      );
    }
  });

  it("says so when the versions differ", async () => {
    const body = envelope("HostResponse", HOST, COLUMNS, API_VERSION + 1);
    await expect(decode("host", body)).rejects.toThrow(/speaks version/);
  });

  it("refuses another route's answer", () =>
    expect(decode("host", runsBody())).rejects.toThrow(/expected a HostResponse/));

  it.each([
    ["no data", [], COLUMNS, /no data/],
    ["a column that was not sent", HOST, COLUMNS.slice(0, 1), /column 1 was not sent/],
  ])("refuses %s", async (_, data, columns, message) => {
    const body = envelope("HostResponse", data, columns);
    await expect(decode("host", body)).rejects.toThrow(ApiError);
    await expect(decode("host", body)).rejects.toThrow(message);
  });

  it("throws a ApiError, and nothing else, at every cut", async () => {
    const whole = envelope("HostResponse", HOST, COLUMNS);
    for (let length = 0; length < whole.byteLength; length += 1) {
      await expect(decode("host", whole.slice(0, length)), `${length}`).rejects.toThrow(
        ApiError,
      );
    }
  });

  it("throws a ApiError or decodes when any byte of the header is changed", async () => {
    const whole = envelope("HostResponse", HOST, COLUMNS);
    const headerEnd = 4 + new DataView(whole).getUint32(0, true);
    for (let index = 0; index < headerEnd; index += 1) {
      const damaged = new Uint8Array(whole.slice(0));
      damaged[index] = (damaged[index] ?? 0) ^ 0x15;
      try {
        await decode("host", damaged.buffer);
      } catch (error) {
        expect(error, `byte ${index}`).toBeInstanceOf(ApiError);
      }
    }
  });
});
