import type {
  AllocationGroup,
  AllocationsResponse,
  HistoryDevice,
} from "../../api/types.gen";
import { BlockAxis } from "./axis";
import { drawnMarks } from "./marks";
import { NO_LINES } from "./paint/colours";
import type { BlockPicture } from "./picture";
import { BlockTile, type TileSpan } from "./tile";

export const WHOLE: TileSpan = {
  low: null,
  high: null,
  y0: null,
  y1: null,
  px: 1200,
  rows: 800,
};

export function testGroup(
  key: string,
  category: AllocationGroup["category"],
): AllocationGroup {
  return { key, label: key, category, stack: null, bytes: 0 };
}

/**
 * Ten columns of one event. Parameters: block 0 of 100 bytes all through. Activations:
 * block 1 of 50 in columns 2 to 7, and block 2 of 30 in 4 to 5 on top of it; 8 bytes in
 * column 9 are too thin.
 */
export function tileAnswer(): AllocationsResponse {
  const columns = 10;
  const activations = [0, 0, 50, 50, 80, 80, 50, 50, 0, 8];
  const active = Float64Array.from(activations, (bytes) => bytes + 100);
  return {
    device: 0,
    axis: "event",
    columns: {
      edge: Float64Array.from({ length: columns + 1 }, (_, i) => i),
      moment: Int32Array.from({ length: columns }, (_, i) => i),
      active,
      reserved: new Float64Array(columns).fill(256),
    },
    lives: {
      life: Int32Array.of(0, 7, 9),
      size: Float64Array.of(100, 50, 30),
      born: Int32Array.of(-1, 2, 4),
      freed: Int32Array.of(10, 8, 6),
      gone: Int32Array.of(10, 8, 6),
      stack: Int32Array.of(-1, 3, 3),
      group: Uint16Array.of(0, 1, 1),
      band: Uint16Array.of(0, 1, 1),
    },
    runs: {
      slot: Int32Array.of(0, 1, 2),
      first: Uint16Array.of(0, 2, 4),
      last: Uint16Array.of(9, 7, 5),
      offset: Float64Array.of(0, 0, 50),
    },
    groups: [testGroup("param", "param"), testGroup("activation", "activation")],
    bands: [testGroup("param", "param"), testGroup("activation", "activation")],
    rest: Float64Array.of(...new Array<number>(19).fill(0), 8),
    bandBytes: Float64Array.of(...new Array<number>(columns).fill(100), ...activations),
    groupBytes: new Float64Array(0),
    minBytes: 10,
    topBytes: 180,
    peakBytes: 180,
    peakMoment: 4,
    marks: null,
  };
}

export function testTile(span: TileSpan = WHOLE): BlockTile {
  return new BlockTile(tileAnswer(), span, "category");
}

/** Ten events in 100 ms; columns of the curve have two events. */
export function testDevice(): HistoryDevice {
  const none = new Float64Array(0);
  return {
    device: 0,
    title: "device 0",
    numEvents: 10,
    numAllocations: 10,
    hasTimes: true,
    firstMs: 1000,
    lastMs: 1100,
    capacityBytes: 300,
    activeBytes: 108,
    allocatedBytes: 108,
    reservedBytes: 256,
    numBefore: 1,
    beforeBytes: 100,
    numLost: 0,
    roundingBytes: 0,
    notes: [],
    peaks: [
      { level: "active", bytes: 180, moment: 4 },
      { level: "allocated", bytes: 180, moment: 4 },
      { level: "reserved", bytes: 256, moment: -1 },
    ],
    marks: {
      kind: new Uint8Array(0),
      kinds: ["oom", "snapshot", "annotation", "step", "tag"],
      moment: new Int32Array(0),
      end: new Int32Array(0),
      label: new Int32Array(0),
      labels: [],
      bytes: none,
      deviceFree: none,
      step: none,
      numMarks: 0,
    },
    curve: {
      event: Int32Array.of(0, 2, 4, 6, 8),
      peak: Int32Array.of(0, 2, 4, 6, 9),
      active: Float64Array.of(100, 150, 180, 150, 108),
      allocated: Float64Array.of(100, 150, 180, 150, 108),
      reserved: new Float64Array(5).fill(256),
      timeMs: Float64Array.of(1000, 1010, 1020, 1080, 1090),
    },
  };
}

export function testPicture(): BlockPicture {
  const device = testDevice();
  const axis = new BlockAxis(device, "event");
  const marks = drawnMarks(device.marks, axis);
  return {
    device,
    axis,
    marks,
    topBytes: 320,
    tiles: [testTile()],
    stacks: null,
    only: "",
    matches: null,
    culprits: NO_LINES,
    moment: null,
    life: null,
    marked: null,
    stack: null,
    range: null,
    theme: "light",
    byteUnit: "auto",
  };
}
