/** Shown as it stands. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  constructor(
    readonly what: string,
    readonly where: string,
    readonly remedy: string,
    readonly kind: "network" | "server" | "decode" | "version",
  ) {
    super(what);
  }
}

/** A lost connection is reported once, for the whole page. */
export function worthSaying(error: ApiError | null, hasContent: boolean): boolean {
  return error !== null && !(hasContent && error.kind === "network");
}

export function isAbort(error: unknown): boolean {
  return error instanceof Error && error.name === "AbortError";
}

/** `asked` names the request for users; a proxy's page has no message of ours. */
export function refusalOf(
  status: number,
  statusText: string,
  body: string,
  asked: string,
): ApiError {
  let said: unknown = null;
  try {
    said = JSON.parse(body);
  } catch {
    // Not our server's words.
  }
  const { what, where, remedy } = (said ?? {}) as Record<string, unknown>;
  const known = typeof what === "string";
  return new ApiError(
    known ? what : `TensorBoard answered ${status} ${statusText}.`.replace(" .", "."),
    known && typeof where === "string" ? where : asked,
    known && typeof remedy === "string" ? remedy : "See TensorBoard's own output.",
    "server",
  );
}
