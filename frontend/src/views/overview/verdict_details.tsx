/** What to try, and behind a click the evidence and what was not recorded. */

import type { OutOfMemory, VerdictAdvice } from "../../api/types.gen";
import { formatBytes, formatBytesExact, type ByteUnit } from "../../base/bytes";
import { CopyIcon } from "../copy_icon";
import { evidenceValue } from "./verdict_words";

export function VerdictDetails(props: {
  readonly one: OutOfMemory;
  readonly byteUnit: ByteUnit;
}) {
  const { one, byteUnit } = props;
  return (
    <div class="oom-part">
      {one.advice.length > 0 && (
        <>
          <h3>What to try</h3>
          <ol class="oom-advice">
            {one.advice.map((advice) => (
              <Advice
                key={advice.text + advice.setting}
                advice={advice}
                byteUnit={byteUnit}
              />
            ))}
          </ol>
        </>
      )}
      {one.evidence.length > 0 && <Evidence one={one} byteUnit={byteUnit} />}
      {one.notRecorded.length > 0 && (
        <details>
          <summary>Not recorded</summary>
          <ul>
            {one.notRecorded.map((text) => (
              <li key={text}>{text}</li>
            ))}
          </ul>
        </details>
      )}
    </div>
  );
}

function Advice(props: {
  readonly advice: VerdictAdvice;
  readonly byteUnit: ByteUnit;
}) {
  const { advice, byteUnit } = props;
  return (
    <li>
      {advice.text}
      {advice.bytes !== null && (
        <span class="oom-stake" title={formatBytesExact(advice.bytes)}>
          {" "}
          up to {formatBytes(advice.bytes, byteUnit)}
        </span>
      )}
      {advice.setting !== "" && <Setting text={advice.setting} />}
    </li>
  );
}

function Setting({ text }: { readonly text: string }) {
  return (
    <span class="oom-setting">
      <code>{text}</code>
      <CopyIcon label="Copy the setting" text={text} />
    </span>
  );
}

function Evidence(props: { readonly one: OutOfMemory; readonly byteUnit: ByteUnit }) {
  const { one, byteUnit } = props;
  return (
    <details>
      <summary>Evidence: {one.evidence.length} numbers</summary>
      <div class="table-scroll">
        <table class="data-table oom-evidence">
          <tbody>
            {one.evidence.map((number) => (
              <tr key={number.key}>
                <th scope="row" class={number.decisive ? "decisive" : undefined}>
                  {number.label}
                </th>
                <td
                  class="num"
                  title={
                    number.unit === "bytes" ? formatBytesExact(number.value) : undefined
                  }
                >
                  {evidenceValue(number, byteUnit)}
                </td>
                <td class="quiet">
                  {number.scope}
                  {number.caveat !== "" && <em>; {number.caveat}</em>}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}
