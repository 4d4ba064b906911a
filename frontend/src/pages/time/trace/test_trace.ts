/** Answers for tests: two ranks, nested slices, a counter. */

import type {
  TraceResponse,
  TraceSlicesResponse,
  TraceSource,
  TraceTrack,
} from "../../../api/types.gen";

export const BASE = 1_780_000_000_000_000_123n;

export function testSource(id: string, more: Partial<TraceSource> = {}): TraceSource {
  return {
    id,
    kind: "trace",
    name: `${id}.pt.trace.json`,
    title: `rank 0: ${id}.pt.trace.json`,
    rank: 0,
    cycle: 1,
    state: "ready",
    progress: 1,
    doing: "",
    problem: null,
    numBytes: 10,
    numSlices: 4,
    startNs: 0,
    endNs: 1_000,
    clock: null,
    notes: [],
    facts: [],
    hasFile: true,
    ...more,
  };
}

export function testTrack(key: string, more: Partial<TraceTrack> = {}): TraceTrack {
  return {
    key,
    source: key.startsWith("a") ? 0 : 1,
    index: Number(key.split(":")[1]),
    name: "thread 1",
    process: "python 7",
    kind: "host",
    rank: key.startsWith("a") ? 0 : 1,
    device: null,
    stream: null,
    numSlices: 4,
    numLevels: 2,
    numInstants: 0,
    unit: null,
    most: null,
    least: null,
    ...more,
  };
}

export function testTrace(
  more: Partial<TraceResponse> = {},
): Pick<TraceResponse, "sources" | "steps" | "tracks"> {
  return {
    sources: [testSource("a"), testSource("b", { rank: 1 })],
    tracks: [
      testTrack("a:0"),
      testTrack("a:1", { name: "stream 7", process: "GPU 0", numLevels: 1 }),
      testTrack("b:0"),
      testTrack("b:3", {
        name: "Allocated peak",
        process: "Memory",
        kind: "counter",
        numSlices: 0,
        numLevels: 0,
        unit: "bytes",
        most: 4096,
        least: 0,
      }),
    ],
    steps: {
      number: Int32Array.of(5, 6),
      startNs: Float64Array.of(0, 500),
      endNs: Float64Array.of(480, 990),
    },
    ...more,
  };
}

/** Two levels of track a:0; the last of level 1 is a block of 9. */
export function testSlices(
  more: Partial<TraceSlicesResponse> = {},
): TraceSlicesResponse {
  return {
    t0: BASE.toString(),
    unitNs: 2,
    zoom: 3,
    lanes: [
      { track: "a:0", level: 0 },
      { track: "a:0", level: 1 },
      { track: "a:0", level: -1 },
    ],
    laneStart: Int32Array.of(0, 1, 4, 7),
    start: Int32Array.of(0, 10, 100, 300, 5, 100, 400),
    duration: Int32Array.of(500, 50, 100, 100, 0, 0, 0),
    row: Int32Array.of(0, 1, 2, 7, -1, -2, -5),
    name: Uint16Array.of(0, 1, 1, 2, 3, 4, 3),
    family: Uint8Array.of(1, 0, 0, 2, 3, 4, 3),
    count: Int32Array.of(1, 1, 1, 9, 1, 3, 1),
    busy: Int32Array.of(500, 50, 100, 40, 0, 0, 0),
    names: ["step", "aten::mm", "launch", "best so far", "out of memory"],
    families: ["operator", "step", "runtime", "instant", "oom"],
    lines: [
      {
        track: "b:3",
        series: "",
        timeNs: Float64Array.of(0, 100, 400),
        value: Float64Array.of(1024, 4096, 2048),
        reduced: "exact",
      },
    ],
    ...more,
  };
}
