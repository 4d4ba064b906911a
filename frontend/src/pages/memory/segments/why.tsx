import { useState } from "preact/hooks";
import { formatBytes, formatBytesExact } from "../../../base/bytes";
import { parseSize } from "../../../model/block_search";
import { Icon } from "../../../widgets/icon/icon";
import { TextButton } from "../../shared/controls/choices";
import { sizeName } from "./panels";
import type { Shown } from "./params";

export function Why({ state, params, setParams, view }: Shown) {
  const { tone, sentence, more, figures, lives } = state.why;
  const [life] = lives;
  return (
    <section class="segments-why" aria-label="Why memory cannot be used">
      <p class="row" role="status">
        {tone !== "plain" && (
          <span class={tone === "ok" ? "status-ok" : "tone-bad"}>
            <Icon name={tone === "ok" ? "check" : "warning"} />
          </span>
        )}
        <strong class={tone === "bad" ? "tone-bad" : ""}>{sentence}</strong>
      </p>
      <p>
        {more.join(" ")}{" "}
        {life !== undefined && (
          <TextButton press={() => setParams({ life, segment: null })}>
            Show it on the map
          </TextButton>
        )}
      </p>
      <dl class="row">
        {figures.map(({ name, bytes, hint, isCause }) => (
          <div key={name} title={`${hint}. ${formatBytesExact(bytes)}`}>
            <dt class="quiet small">{name}</dt>
            <dd class={isCause ? "tone-bad" : ""}>
              {formatBytes(bytes, view.byteUnit)}
            </dd>
          </div>
        ))}
      </dl>
      <Ask request={params.request} onRequest={(request) => setParams({ request })} />
    </section>
  );
}

function Ask({
  request,
  onRequest,
}: {
  /** Bytes of a hypothetical request; null: none. */
  readonly request: number | null;
  readonly onRequest: (bytes: number | null) => void;
}) {
  const [problem, setProblem] = useState("");
  const ask = (text: string): void => {
    const bytes = parseSize(text);
    const isEmpty = text.trim() === "";
    setProblem(isEmpty || bytes !== null ? "" : "Write a size like 512 MiB or 2g.");
    if (isEmpty || bytes !== null) onRequest(bytes === null ? null : Math.round(bytes));
  };
  return (
    <form
      class="row small"
      onSubmit={(event) => {
        event.preventDefault();
        const box = event.currentTarget.elements.namedItem("bytes");
        if (box instanceof HTMLInputElement) ask(box.value);
      }}
    >
      <label>
        <span class="quiet">Would</span>{" "}
        <input
          type="text"
          name="bytes"
          key={request ?? "none"}
          placeholder="512 MiB"
          autocomplete="off"
          defaultValue={request === null ? "" : sizeName(request)}
          aria-label="Bytes of a request"
        />{" "}
        <span class="quiet">fit at this moment?</span>
      </label>
      <button type="submit" class="button">
        Check
      </button>
      {request !== null && <TextButton press={() => ask("")}>Clear</TextButton>}
      {problem !== "" && (
        <span class="tone-bad" role="alert">
          {problem}
        </span>
      )}
    </form>
  );
}
