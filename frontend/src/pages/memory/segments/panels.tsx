import { useMemo, useState } from "preact/hooks";
import { formatBytes, formatBytesExact, sizeName } from "../../../base/bytes";
import { parseSize } from "../../../model/block_search";
import { Icon } from "../../../widgets/icon/icon";
import { ROW_PX } from "../../../widgets/row_table/row_table";
import { TextButton } from "../../shared/controls/choices";
import { AnswerTable } from "../../shared/table/answer_table";
import type { OpenSegments } from "./params";

const HEAD_PX = 48;
const MOST_ROWS = 8;
const COLOURS = { pinned: "var(--warn)", free: "var(--control-border)" };

export function Panels({ state, view, stacks, open }: OpenSegments) {
  const tables = {
    pinnersort: state.pinners,
    sizesort: state.freeSizes,
    arenasort: state.arenas,
  };
  const { device } = open.device;
  const { culprit, tone } = state.why;
  const culprits = useMemo(() => {
    const line = culprit < 0 ? [] : [stacks?.stackLabel(culprit) ?? ""];
    return new Set(tone === "bad" ? [...line, "requested"] : line);
  }, [stacks, culprit, tone]);
  return Object.entries(tables).map(([word, table]) => (
    <AnswerTable
      key={word}
      view={view}
      table={table}
      word={word}
      colours={COLOURS}
      stacks={stacks}
      culprits={culprits}
      shell={view}
      about={{ device, moment: state.moment.moment }}
      heightPx={HEAD_PX + ROW_PX * Math.min(Math.max(table.numRows, 2), MOST_ROWS)}
      steady
    />
  ));
}

export function Why({ state, params, setParams, view }: OpenSegments) {
  const { tone, sentence, more, figures, lives } = state.why;
  const [life] = lives;
  return (
    <section class="column-tight segments-why" aria-label="Why memory cannot be used">
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
