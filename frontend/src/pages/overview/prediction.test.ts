import { describe, expect, it } from "vitest";
import type { Prediction } from "../../api/types.gen";
import { formatByteRange } from "../../base/bytes";
import { fitLook, fitSentences, ledgerRows } from "./prediction_rows";

const MIB = 1024 ** 2;
const GIB = 1024 ** 3;

const CONTEXT = {
  name: "CUDA context and kernels",
  lowBytes: 450 * MIB,
  highBytes: 750 * MIB,
  source: "what nvidia-smi shows",
};

function prediction(changes: Partial<Prediction> = {}): Prediction {
  const device = {
    device: 0,
    peakReservedBytes: 20 * GIB,
    othersLowBytes: 0,
    othersHighBytes: 0,
    neededLowBytes: 20 * GIB + 450 * MIB,
    neededHighBytes: 20 * GIB + 750 * MIB,
  };
  return {
    fit: "fits",
    reason: "it leaves 3.27 GiB free",
    decides: "",
    rank: 0,
    numRanks: 1,
    estimates: [CONTEXT],
    capacityBytes: 24 * GIB,
    devices: [device],
    ...changes,
  };
}

describe("a range of sizes", () =>
  it("has one unit, and the lower end first", () => {
    expect(formatByteRange(450 * MIB, 750 * MIB)).toBe("450 – 750 MiB");
    expect(formatByteRange(1.5 * GIB, 0.5 * GIB)).toBe("0.50 – 1.50 GiB");
    expect(formatByteRange(-300 * MIB, 100 * MIB)).toBe("−300 – 100 MiB");
    expect(formatByteRange(GIB, GIB)).toBe("1.00 GiB");
  }));

describe("the ledger of a virtual run", () => {
  it("shows what was estimated as ranges with their source, and the total as one", () => {
    const rows = ledgerRows(prediction(), "auto");
    expect(rows.map((row) => [row.label, row.size, row.mark])).toEqual([
      ["Peak reserved", "20.0 GiB", ""],
      ["CUDA context and kernels", "450 – 750 MiB", "estimated"],
      ["Needed", "20.4 – 20.7 GiB", "estimated"],
    ]);
    expect(rows[1]?.source).toBe(CONTEXT.source);
    expect(rows[2]?.source).toBe("of the device’s 24.0 GiB");
  });

  it("tells what was measured from what was estimated", () => {
    const measured = { ...CONTEXT, lowBytes: GIB, highBytes: GIB };
    const needed = { neededLowBytes: 21 * GIB, neededHighBytes: 21 * GIB };
    const devices = prediction().devices.map((one) => ({ ...one, ...needed }));
    const rows = ledgerRows(prediction({ estimates: [measured], devices }), "auto");
    expect(rows.map((row) => row.mark)).toEqual(["", "measured", ""]);
    expect(rows[2]?.size).toBe("21.0 GiB");
  });

  it("never says zero of what is not known", () => {
    const devices = prediction().devices.map((one) => ({
      ...one,
      neededLowBytes: null,
      neededHighBytes: null,
    }));
    const rows = ledgerRows(prediction({ fit: "does not fit", devices }), "auto");
    expect(rows.at(-1)).toMatchObject({ label: "Needed", size: "–", mark: "" });
    const before = ledgerRows(prediction({ fit: "cannot say", devices: [] }), "auto");
    expect(before.map((row) => row.label)).toEqual(["CUDA context and kernels"]);
  });

  it("adds what other ranks need of the same device", () => {
    const devices = prediction().devices.map((one) => ({
      ...one,
      othersLowBytes: 2 * GIB,
      othersHighBytes: 3 * GIB,
    }));
    const rows = ledgerRows(prediction({ devices }), "auto");
    expect(rows.map(({ label, size }) => [label, size])[2]).toEqual([
      "Other ranks",
      "2.00 – 3.00 GiB",
    ]);
  });

  it("names devices where there are several", () => {
    const [first] = prediction().devices;
    if (first === undefined) throw new Error("there is one");
    const devices = [first, { ...first, device: 1 }];
    const labels = ledgerRows(prediction({ devices }), "auto").map((row) => row.label);
    expect(labels).toContain("Peak reserved of device 1");
    expect(labels).toContain("Needed of device 0");
  });

  it("says the answer in a word, why, and what would decide", () => {
    expect(fitLook(prediction())).toMatchObject({ word: "Fits", tone: "ok" });
    const close = prediction({
      fit: "too close to call",
      decides: "--outside decides",
      rank: 3,
      numRanks: 8,
    });
    expect(fitLook(close)).toMatchObject({ word: "Too close to call", tone: "warn" });
    expect(fitSentences(close)).toEqual([
      "Rank 3, the worst of 8: it leaves 3.27 GiB free.",
      "--outside decides.",
    ]);
    expect(fitSentences(prediction())).toEqual(["It leaves 3.27 GiB free."]);
  });
});
