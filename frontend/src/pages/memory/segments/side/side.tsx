/** Beside the map: what reserved memory is made of, and whether a request fits. */

import { useState } from "preact/hooks";
import type {
  HistoryDevice,
  HistoryFacts,
  SegmentsResponse,
} from "../../../../api/types.gen";
import {
  formatBytes,
  formatBytesExact,
  formatShare,
  type ByteUnit,
} from "../../../../base/bytes";
import { parseSize } from "../../../../model/block_search";
import { Icon } from "../../../../widgets/icon/icon";
import { FreeHistogram } from "./free_histogram";
import { requestWords } from "../state/request";

export interface SideProps {
  readonly state: SegmentsResponse;
  readonly facts: HistoryFacts;
  readonly device: HistoryDevice;
  /** Bytes somebody asks about; null: nobody does. */
  readonly request: number | null;
  readonly onRequest: (bytes: number | null) => void;
  readonly byteUnit: ByteUnit;
}

export function Side(props: SideProps) {
  const { state, byteUnit } = props;
  return (
    <aside class="segments-side">
      <Reserved {...props} />
      <Request {...props} />
      <FreeHistogram
        sizes={state.freeSizes}
        request={state.request}
        byteUnit={byteUnit}
      />
    </aside>
  );
}

function Reserved({ state, device, byteUnit }: SideProps) {
  const { reservedBytes } = state;
  const parts = reservedParts(state);
  const capacity = device.capacityBytes;
  return (
    <section class="segments-card" aria-label="Reserved memory">
      <div class="panel-head">
        <h2>Reserved</h2>
        <b title={formatBytesExact(reservedBytes)}>
          {formatBytes(reservedBytes, byteUnit)}
        </b>
        {capacity !== null && (
          <span class="quiet">of {formatBytes(capacity, byteUnit)} of the device</span>
        )}
      </div>
      <div class="reserved-bar" aria-hidden="true">
        {parts.map(({ key, bytes }) => (
          <span
            key={key}
            class={`is-${key}`}
            style={{ width: `${(100 * bytes) / Math.max(reservedBytes, 1)}%` }}
          />
        ))}
      </div>
      <table class="reserved-parts">
        <tbody>
          {parts.map(({ key, label, hint, bytes }) => (
            <tr key={key} title={`${hint}. ${formatBytesExact(bytes)}`}>
              <td>
                <span class={`segment-swatch is-${key}`} /> {label}
              </td>
              <td class="num">{formatBytes(bytes, byteUnit)}</td>
              <td class="num quiet">{formatShare(bytes, reservedBytes)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {parts.length === 0 && <p class="quiet">Nothing is reserved at this moment.</p>}
    </section>
  );
}

function Request({ state, facts, request, onRequest, byteUnit }: SideProps) {
  const [problem, setProblem] = useState("");
  const asked = state.request;
  const words = asked === null ? null : requestWords(asked, facts, byteUnit);
  const ask = (text: string): void => {
    if (text.trim() === "") {
      setProblem("");
      onRequest(null);
      return;
    }
    const bytes = parseSize(text);
    setProblem(bytes === null ? "Write a size like 512 MiB or 2g." : "");
    if (bytes !== null) onRequest(Math.round(bytes));
  };
  return (
    <section class="segments-card" aria-label="Would a request fit">
      <div class="panel-head">
        <h2>{asked?.isOom === true ? "The request that failed" : "Would it fit?"}</h2>
      </div>
      {words !== null && (
        <div class={`request-words is-${words.tone}`} role="status">
          <p>
            <Icon name={words.tone === "ok" ? "check" : "warning"} />
            <strong>{words.headline}</strong>
          </p>
          {words.more.map((line) => (
            <p key={line} class="quiet">
              {line}
            </p>
          ))}
        </div>
      )}
      <form
        class="request-form"
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
            defaultValue={
              request === null ? "" : formatBytes(request).replace(/\.0+ /, " ")
            }
            aria-label="Bytes of a request"
          />{" "}
          <span class="quiet">fit at this moment?</span>
        </label>
        <button type="submit" class="button">
          Ask
        </button>
        {request !== null && (
          <button
            type="button"
            class="text-button"
            onClick={() => {
              setProblem("");
              onRequest(null);
            }}
          >
            Clear
          </button>
        )}
      </form>
      {problem !== "" && (
        <p class="is-bad" role="alert">
          {problem}
        </p>
      )}
    </section>
  );
}

/** What reserved memory is made of at a moment. Pure. */
export interface ReservedPart {
  readonly key: "requested" | "rounding" | "split" | "whole";
  readonly label: string;
  readonly hint: string;
  readonly bytes: number;
}

/** Parts that add up to `reservedBytes`; those of nothing are left out. */
function reservedParts(state: SegmentsResponse): readonly ReservedPart[] {
  const active = state.allocatedBytes + state.pendingBytes;
  const requested = Math.min(state.requestedBytes, active);
  const { freeBytes, numActive } = state.segments;
  let whole = 0;
  numActive.forEach((num, row) => {
    if (num === 0) whole += freeBytes[row] ?? 0;
  });
  const parts: ReservedPart[] = [
    {
      key: "requested",
      label: "live, as asked for",
      hint: "What the program asked for and still holds, or waits to be freed",
      bytes: requested,
    },
    {
      key: "rounding",
      label: "rounding",
      hint: "Blocks are larger than what was asked for: multiples of 512 bytes, or what was not worth splitting",
      bytes: active - requested,
    },
    {
      key: "split",
      label: "free, beside live blocks",
      hint: "inactive_split: fragmentation; it can serve requests that fit, but not go back to the device",
      bytes: Math.max(0, state.freeBytes - whole),
    },
    {
      key: "whole",
      label: "free segments",
      hint: "Wholly free: torch.cuda.empty_cache() gives these back",
      bytes: whole,
    },
  ];
  return parts.filter(({ bytes }) => bytes > 0);
}
