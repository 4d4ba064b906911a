import { describe, expect, it } from "vitest";
import { ApiError, Client, requestPath, worthSaying } from "./client";
import { runsBody } from "./test_bodies";

interface TestRequest {
  readonly url: string;
  readonly etag: string | undefined;
}

function clientOf(answer: (asked: TestRequest) => Response | Promise<Response>) {
  const asked: TestRequest[] = [];
  const client = new Client("./", (url, init) => {
    const headers = new Headers(init.headers);
    const request = { url, etag: headers.get("If-None-Match") ?? undefined };
    asked.push(request);
    return Promise.resolve(answer(request));
  });
  return { client, asked };
}

function ok(body: ArrayBuffer, etag?: string): Response {
  return new Response(body, { headers: etag === undefined ? {} : { ETag: etag } });
}

async function errorOf(client: Client): Promise<ApiError> {
  const error: unknown = await client
    .get("runs", {})
    .catch((reason: unknown) => reason);
  if (error instanceof ApiError) return error;
  throw new Error(`expected an ApiError, got ${String(error)}`);
}

describe("worthSaying", () => {
  const failure = (kind: ApiError["kind"]): ApiError => new ApiError("", "", "", kind);

  it("leaves a lost connection to the banner while older content stands", () => {
    expect(worthSaying(null, true)).toBe(false);
    expect(worthSaying(failure("network"), true)).toBe(false);
    expect(worthSaying(failure("network"), false)).toBe(true);
    expect(worthSaying(failure("server"), true)).toBe(true);
  });
});

describe("Client", () => {
  it("asks with the ETag it has and gives back the same object on 304", async () => {
    const { client, asked } = clientOf(({ etag }) =>
      etag === '"a"' ? new Response(null, { status: 304 }) : ok(runsBody(), '"a"'),
    );
    const first = await client.get("runs", {});
    expect(await client.get("runs", {})).toBe(first);
    expect(asked.map((request) => request.etag)).toEqual([undefined, '"a"']);
  });

  it("takes what was asked for ahead once, and asks itself afterwards", async () => {
    const { client, asked } = clientOf(() => ok(runsBody(), '"a"'));
    client.ahead("runs", {});
    expect(asked.length).toBe(1);
    const first = await client.get("runs", {});
    expect(asked.length).toBe(1);
    expect(await client.get("runs", {})).not.toBe(first);
    expect(asked.map((request) => request.etag)).toEqual([undefined, '"a"']);
  });

  it("tells who takes it that what was asked for ahead failed", async () => {
    const client = new Client("./", () => Promise.reject(new TypeError("no network")));
    client.ahead("runs", {});
    expect((await errorOf(client)).kind).toBe("network");
  });

  it("drops what was asked for ahead where nobody waits for it any more", async () => {
    const { client } = clientOf(() => ok(runsBody()));
    client.ahead("runs", {});
    const asker = new AbortController();
    asker.abort();
    await expect(client.get("runs", {}, asker.signal)).rejects.toThrow(/abort/i);
  });

  it("takes a new answer when the ETag changed", async () => {
    let version = 0;
    const { client } = clientOf(() => {
      version += 1;
      return ok(runsBody(version.toString()), `"${version}"`);
    });
    expect((await client.get("runs", {})).pluginVersion).toBe("1");
    expect((await client.get("runs", {})).pluginVersion).toBe("2");
  });

  it("keeps answers of different queries apart and forgets the oldest", async () => {
    const { client, asked } = clientOf(({ url }) => ok(runsBody(url), `"${url}"`));
    for (let i = 0; i < 40; i += 1) await client.get("runs", { run: i });
    await client.get("runs", { run: 39 });
    await client.get("runs", { run: 0 });
    expect(asked.at(-2)?.etag).toBe('"./runs?run=39"');
    expect(asked.at(-1)?.etag).toBeUndefined();
  });

  it("passes on the server's own words", async () => {
    const rest = { where: "run=x", remedy: "Choose another." };
    const body = { what: "No such run.", ...rest };
    const { client } = clientOf(() => Response.json(body, { status: 404 }));
    expect(await errorOf(client)).toMatchObject({
      message: "No such run.",
      ...rest,
      kind: "server",
    });
  });

  it("says something useful where the server sent none", async () => {
    const { client } = clientOf(
      () => new Response("<h1>Bad gateway</h1>", { status: 502 }),
    );
    const error = await errorOf(client);
    expect(error.message).toContain("502");
    expect(error.remedy).not.toBe("");
    expect(error.where).toBe("");
  });

  it("tells a network failure from a broken answer, and names no route", async () => {
    const offline = clientOf(() => Promise.reject(new TypeError("Failed to fetch")));
    expect(await errorOf(offline.client)).toMatchObject({ kind: "network", where: "" });
    const cut = clientOf(() => ok(runsBody().slice(0, 40)));
    expect((await errorOf(cut.client)).kind).toBe("decode");
  });

  it("asks for a reload when the server is of another version", async () => {
    const { client } = clientOf(() => ok(runsBody("1", 9)));
    const error = await errorOf(client);
    expect(error.kind).toBe("version");
    expect(error.remedy).toContain("reload");
  });

  it("lets an abort through as an abort", async () => {
    const { client } = clientOf(() =>
      Promise.reject(new DOMException("stopped", "AbortError")),
    );
    await expect(client.get("runs", {})).rejects.toMatchObject({ name: "AbortError" });
  });
});

describe("requestPath", () => {
  it("leaves out what is absent, sorts and escapes the rest", () => {
    const query = { run: "a/b&c=<d>", rank: null, series: "", px: 800 };
    expect(requestPath("timeline", query)).toBe(
      "timeline?px=800&run=a%2Fb%26c%3D%3Cd%3E",
    );
    expect(requestPath("runs", {})).toBe("runs");
  });

  it("asks for no picture that is larger than the server draws", () => {
    const query = { px: 20_000, rows: 8192.5, e1: 20_000 };
    expect(requestPath("allocations", query)).toBe(
      "allocations?e1=20000&px=8192&rows=8192",
    );
    expect(requestPath("allocations", { px: null })).toBe("allocations");
  });
});
