import { afterEach, describe, expect, it, vi } from "vitest";
import { bytesOf, MOST_BYTES, openInPerfetto, perfettoAt, small } from "./perfetto";

function answer(length: number, arrayBuffer: () => Promise<ArrayBuffer>): Response {
  const headers = new Headers({ "Content-Length": length.toString() });
  return { headers, arrayBuffer } as unknown as Response;
}

const never = (): Promise<ArrayBuffer> => {
  throw new Error("fetched");
};

describe("the bytes that Perfetto is given", () => {
  it("are all of the answer", async () => {
    const buffer = new ArrayBuffer(12);
    expect(await bytesOf(answer(12, () => Promise.resolve(buffer)))).toBe(buffer);
  });

  it("are not fetched where a browser cannot hand them on", () => {
    expect(() => small(answer(MOST_BYTES + 1, never))).toThrow("download it");
    const most = answer(MOST_BYTES, never);
    expect(small(most)).toBe(most);
  });

  it("are said to be too many where the browser finds that late", async () => {
    const full = () => Promise.reject(new RangeError("allocation failed"));
    await expect(bytesOf(answer(0, full))).rejects.toThrow("download it instead");
    const lost = () => Promise.reject(new TypeError("network error"));
    await expect(bytesOf(answer(0, lost))).rejects.toThrow("network error");
  });

  it("go to one origin alone", () => {
    const local = perfettoAt("local", "http://h:6006/x/data/plugin/memboard/app.html");
    expect(local.href).toBe("http://h:6006/x/data/plugin/memboard/perfetto/index.html");
    expect(local.origin).toBe("http://h:6006");
    expect(perfettoAt("hosted", "http://h/").origin).toBe("https://ui.perfetto.dev");
  });
});

describe("Perfetto's tab", () => {
  afterEach(() => {
    vi.unstubAllGlobals();
  });

  function opened(): { done: string[] } {
    const done: string[] = [];
    const tab = {
      closed: false,
      close: () => done.push("close"),
      location: { replace: (url: string) => done.push(`go ${url}`) },
    };
    const open = (url: string): unknown => {
      done.push(`open ${url}`);
      return tab;
    };
    vi.stubGlobal("window", Object.assign(new EventTarget(), { open }));
    return { done };
  }

  it("goes nowhere before the server answers, and is closed where it refuses", async () => {
    const { done } = opened();
    const place = perfettoAt("hosted", "http://h/");
    const refused = () => Promise.reject(new Error("gone"));
    await expect(openInPerfetto(place, "t", "f", refused)).rejects.toThrow("gone");
    expect(done).toEqual(["open about:blank", "close"]);
  });

  it("is closed where the trace is too large", async () => {
    const { done } = opened();
    const place = perfettoAt("hosted", "http://h/");
    const large = () => Promise.resolve(answer(MOST_BYTES + 1, never));
    await expect(openInPerfetto(place, "t", "f", large)).rejects.toThrow("download it");
    expect(done).toEqual(["open about:blank", "close"]);
  });
});
