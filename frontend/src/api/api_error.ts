/** Shown as it stands. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  constructor(
    message: string,
    readonly where: string,
    readonly remedy: string,
    readonly kind: "network" | "server" | "decode" | "version",
  ) {
    super(message);
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
  let answer: unknown = null;
  try {
    answer = JSON.parse(body);
  } catch {
    // Not our server's words.
  }
  const { what: message, where, remedy } = (answer ?? {}) as Record<string, unknown>;
  const isOurs = typeof message === "string";
  return new ApiError(
    isOurs
      ? message
      : `TensorBoard answered ${status} ${statusText}.`.replace(" .", "."),
    isOurs && typeof where === "string" ? where : asked,
    isOurs && typeof remedy === "string" ? remedy : "See TensorBoard's own output.",
    "server",
  );
}
