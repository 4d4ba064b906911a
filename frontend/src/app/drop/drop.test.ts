import { describe, expect, it, vi } from "vitest";
import { ApiError } from "../../api/client";
import { DROP_HEADER, sendDrop } from "../../api/live/sending";
import { envelope } from "../../api/test_bodies";
import type { DropResponse } from "../../api/types.gen";
import { type DropProgress, sendAll, type DroppedItem } from "./queue";
import { carriesFiles, itemsOf } from "./drop";

function file(name: string, size = 3): DroppedItem & { readonly file: File } {
  return { name, file: new File([new Uint8Array(size)], name) };
}

function answer(name: string): DropResponse {
  return { run: "r", view: "blocks", history: `f-${name}`, name, rank: null };
}

describe("sendAll", () => {
  it("sends one after another and tells how far it is", async () => {
    const seen: DropProgress[] = [];
    let running = 0;
    const { taken, faults } = await sendAll(
      [file("a"), file("b")],
      100,
      async (sent, onShare) => {
        running += 1;
        expect(running).toBe(1);
        onShare(0.5);
        await Promise.resolve();
        running -= 1;
        return answer(sent.name);
      },
      (progress) => seen.push(progress),
    );
    expect(taken.map(({ history }) => history)).toEqual(["f-a", "f-b"]);
    expect(faults).toEqual([]);
    expect(
      seen.map(({ name, index, count, share }) => [name, index, count, share]),
    ).toEqual([
      ["a", 1, 2, 0],
      ["a", 1, 2, 0.5],
      ["b", 2, 2, 0],
      ["b", 2, 2, 0.5],
    ]);
  });

  it("names the bad ones and sends the others", async () => {
    const sent: string[] = [];
    const { taken, faults } = await sendAll(
      [file("large", 11), { file: null, name: "folder" }, file("bad"), file("good")],
      10,
      (sentFile) => {
        sent.push(sentFile.name);
        return sentFile.name === "bad"
          ? Promise.reject(
              new ApiError("This is no snapshot.", "bad", "Leave it.", "server"),
            )
          : Promise.resolve(answer(sentFile.name));
      },
      () => undefined,
    );
    expect(sent).toEqual(["bad", "good"]);
    expect(taken.map(({ name }) => name)).toEqual(["good"]);
    expect(faults.map(({ name, message }) => [name, message])).toEqual([
      ["large", "The file has 11 B; at most 10 B are taken."],
      ["folder", "This is a folder."],
      ["bad", "This is no snapshot."],
    ]);
    expect(faults.every(({ remedy }) => remedy !== "")).toBe(true);
  });

  it("sends nothing where dropping is off", async () => {
    const { taken, faults } = await sendAll(
      [file("a")],
      0,
      () => Promise.reject(new Error("not asked for")),
      () => undefined,
    );
    expect(taken).toEqual([]);
    expect(faults[0]?.message).toContain("switched off");
  });

  it("ends without a word where it is called off", async () => {
    const { taken, faults } = await sendAll(
      [file("a"), file("b")],
      100,
      () => Promise.reject(new DOMException("off", "AbortError")),
      () => undefined,
    );
    expect([...taken, ...faults]).toEqual([]);
  });

  it("has words for what nobody foresaw", async () => {
    const { faults } = await sendAll(
      [file("a")],
      100,
      () => Promise.reject(new Error("?")),
      () => undefined,
    );
    expect(faults).toEqual([
      { name: "a", message: "The file could not be sent.", remedy: "Drop it again." },
    ]);
  });
});

type Heard = ((event: ProgressEvent) => unknown) | null;

/** As much of an XMLHttpRequest as a file needs. */
class FakeUpload {
  status = 0;
  statusText = "";
  response: unknown = null;
  readonly upload: { onprogress: Heard } = { onprogress: null };
  onload: Heard = null;
  onerror: Heard = null;
  onabort: Heard = null;
  readonly asked: string[] = [];
  body: Blob | null = null;

  open(method: string, url: string): void {
    this.asked.push(`${method} ${url}`);
  }

  setRequestHeader(name: string, value: string): void {
    this.asked.push(`${name}: ${value}`);
  }

  send(body: Blob): void {
    this.body = body;
  }

  abort(): void {
    this.onabort?.({} as ProgressEvent);
  }

  progress(loaded: number, total: number): void {
    const event = { lengthComputable: true, loaded, total };
    this.upload.onprogress?.(event as ProgressEvent);
  }

  end(status: number, response: unknown): void {
    this.status = status;
    this.statusText = "Said";
    this.response = response;
    this.onload?.({} as ProgressEvent);
  }
}

function start(name: string, abort = new AbortController()) {
  const upload = new FakeUpload();
  vi.stubGlobal("XMLHttpRequest", function () {
    return upload;
  });
  const shares: number[] = [];
  const promise = sendDrop(
    file(name).file,
    (share) => shares.push(share),
    abort.signal,
  );
  return { upload, abort, shares, promise };
}

function bytes(text: string): ArrayBuffer {
  return new TextEncoder().encode(text).buffer;
}

describe("sendDrop", () => {
  it("posts the file itself, with the header of our page", async () => {
    const { upload, shares, promise } = start("a b&c/\ud800.pickle");
    expect(upload.asked).toEqual([
      "POST ./drop?name=a%20b%26c%2F%EF%BF%BD.pickle",
      `${DROP_HEADER}: 1`,
      "Content-Type: application/octet-stream",
    ]);
    expect(upload.body?.size).toBe(3);
    upload.progress(1, 2);
    const data = {
      run: "r1",
      view: "blocks",
      history: "f1",
      name: "a.pickle",
      rank: 3,
    };
    upload.end(200, envelope("DropResponse", data, []));
    expect(await promise).toEqual(data);
    expect(shares).toEqual([0.5]);
  });

  it("passes the server's own words on", async () => {
    const { upload, promise } = start("a");
    upload.end(
      413,
      bytes('{"what": "Too large.", "where": "a", "remedy": "Open it."}'),
    );
    await expect(promise).rejects.toMatchObject({
      message: "Too large.",
      remedy: "Open it.",
    });
  });

  it("copes with an answer that is not ours", async () => {
    const { upload, promise } = start("a");
    upload.end(502, bytes("<html>"));
    await expect(promise).rejects.toMatchObject({
      message: "TensorBoard answered 502 Said.",
    });
    const other = start("a");
    other.upload.end(200, bytes("????????"));
    await expect(other.promise).rejects.toBeInstanceOf(ApiError);
  });

  it("says where the connection broke", async () => {
    const { upload, promise } = start("a");
    upload.onerror?.({} as ProgressEvent);
    await expect(promise).rejects.toMatchObject({ kind: "network" });
  });

  it("can be called off, before it begins too", async () => {
    const { abort, promise } = start("a");
    abort.abort();
    await expect(promise).rejects.toMatchObject({ name: "AbortError" });
    const late = start("a", abort);
    await expect(late.promise).rejects.toMatchObject({ name: "AbortError" });
    expect(late.upload.asked).toEqual([]);
  });
});

describe("what a drag carries", () => {
  const item = (kind: string, name: string, isDirectory = false) => ({
    kind,
    getAsFile: () => (kind === "file" ? file(name).file : null),
    webkitGetAsEntry: () => (kind === "file" ? { isDirectory, name } : null),
  });
  const transfer = (...items: readonly unknown[]): DataTransfer =>
    ({ items, types: ["Files"] }) as unknown as DataTransfer;

  it("is files and folders, and nothing else", () => {
    const items = itemsOf(
      transfer(
        item("file", "a.pickle"),
        item("string", "x"),
        item("file", "dir", true),
      ),
    );
    expect(
      items.map(({ name, file: droppedFile }) => [name, droppedFile === null]),
    ).toEqual([
      ["a.pickle", false],
      ["dir", true],
    ]);
  });

  it("is taken only where it has files: text and links are the browser's", () => {
    expect(carriesFiles(transfer())).toBe(true);
    expect(carriesFiles({ types: ["text/plain"] } as unknown as DataTransfer)).toBe(
      false,
    );
    expect(carriesFiles(null)).toBe(false);
  });
});
