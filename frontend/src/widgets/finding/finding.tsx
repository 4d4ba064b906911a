/**
 * One finding, wherever it is shown: a line that says what is wrong, where, when and what
 * it costs; opened, also why, what to try, and the evidence. All meaning comes from the
 * server.
 */

import { useId, useState } from "preact/hooks";
import type { Advice, Evidence, Finding as FindingData } from "../../api/types.gen";
import { formatBytesExact, type ByteUnit } from "../../base/bytes";
import { copyText } from "../../base/clipboard";
import type { Theme } from "../../base/tokens";
import { formatQuantity } from "../../model/words/quantity";
import { CopyIcon } from "../icon/copy_icon";
import { Icon, type IconName } from "../icon/icon";
import { Culprit } from "./culprit";
import { HeldBy } from "./held_by";
import { openPlace, whereParts, type PlaceOpener } from "./place";
import "./finding.css";

const LOOKS: Readonly<
  Record<FindingData["severity"], { readonly icon: IconName; readonly tone: string }>
> = {
  error: { icon: "cross", tone: "status-bad" },
  warning: { icon: "warning", tone: "status-warn" },
  info: { icon: "info", tone: "status-quiet" },
};

const PER: Readonly<Partial<Record<FindingData["unit"], string>>> = {
  seconds: " per step",
  percent: " of the steps",
};

export interface FindingProps extends PlaceOpener {
  readonly one: FindingData;
  readonly theme: Theme;
  readonly byteUnit: ByteUnit;
  /** Open until it is closed. */
  readonly isOpen: boolean;
  readonly say: (sentence: string) => void;
}

export function Finding(props: FindingProps) {
  const { one, byteUnit } = props;
  const [chosen, setChosen] = useState<boolean | null>(null);
  const isOpen = chosen ?? props.isOpen;
  const id = useId();
  return (
    <article class={`finding ${one.severity} ${isOpen ? "open" : ""}`}>
      <Head {...props} isOpen={isOpen} body={id} toggle={() => setChosen(!isOpen)} />
      {isOpen && (
        <div id={id} class="finding-body">
          <p class="finding-sentence">
            <Culprit of={one}>{one.sentence}</Culprit>
            {one.also.length > 0 && (
              <span class="quiet"> Also: {one.also.join(", ")}.</span>
            )}
          </p>
          <div class="finding-columns">
            {one.state !== null && (
              <HeldBy
                state={one.state}
                line={one.line}
                theme={props.theme}
                byteUnit={byteUnit}
                showModules={
                  one.state.origin === "file"
                    ? null
                    : () => {
                        if (one.rank !== null) props.chooseRank(one.rank);
                        props.showPage("modules", {});
                      }
                }
              />
            )}
            <div class="finding-part">
              {one.advice.length > 0 && (
                <>
                  <h3>What to try</h3>
                  <ol class="finding-advice">
                    {one.advice.map((advice) => (
                      <Try
                        key={advice.text + advice.setting}
                        one={advice}
                        of={one}
                        byteUnit={byteUnit}
                      />
                    ))}
                  </ol>
                </>
              )}
              <div class="finding-more">
                <EvidenceTable one={one} byteUnit={byteUnit} />
                <Texts title="More ranks" texts={one.others} />
                <Texts title="Not recorded" texts={one.notRecorded} />
              </div>
            </div>
          </div>
        </div>
      )}
    </article>
  );
}

function Head(
  props: FindingProps & { readonly body: string; readonly toggle: () => void },
) {
  const { one, say, isOpen } = props;
  const { place, state } = one;
  const look = LOOKS[one.severity];
  const where = whereParts(one);
  return (
    <header class="finding-head">
      <h2 class={look.tone}>
        <button
          type="button"
          aria-expanded={isOpen}
          aria-controls={isOpen ? props.body : undefined}
          onClick={props.toggle}
        >
          <Icon name={look.icon} sizePx={18} />
          {one.title}
        </button>
      </h2>
      <p class="finding-where" title={isOpen ? undefined : one.sentence}>
        {where.map((part, at) => (
          <span key={part} class="nowrap">
            {at > 0 && " · "}
            <Culprit of={one}>{part}</Culprit>
          </span>
        ))}
        {!isOpen && (
          <>
            {where.length > 0 && " — "}
            {one.sentence}
          </>
        )}
      </p>
      {one.cost !== null && one.cost > 0 && (
        <span class="finding-cost" title="What it costs">
          {formatQuantity(one.cost, one.unit, props.byteUnit)}
          {PER[one.unit] ?? ""}
        </span>
      )}
      <div class="finding-actions">
        {place !== null && (
          <button type="button" class="button" onClick={() => openPlace(place, props)}>
            {place.label}
            <Icon name="right" />
          </button>
        )}
        {state !== null && isOpen && (
          <button
            type="button"
            class="button"
            title="Copy the report as Markdown"
            onClick={() => {
              void copyText(state.report).then((copied) =>
                say(copied ? "Report copied" : "The browser refused to copy"),
              );
            }}
          >
            <Icon name="copy" />
            Copy report
          </button>
        )}
      </div>
    </header>
  );
}

function Try(props: {
  readonly one: Advice;
  readonly of: FindingData;
  readonly byteUnit: ByteUnit;
}) {
  const { text, gain, unit, setting } = props.one;
  return (
    <li>
      <Culprit of={props.of}>{text}</Culprit>
      {gain !== null && (
        <span
          class="finding-gain"
          title={unit === "bytes" ? formatBytesExact(gain) : undefined}
        >
          {" "}
          up to {formatQuantity(gain, unit, props.byteUnit)}
          {PER[unit] ?? ""}
        </span>
      )}
      {setting !== "" && (
        <span class="finding-setting">
          <code>{setting}</code>
          <CopyIcon label="Copy the setting" text={setting} />
        </span>
      )}
    </li>
  );
}

function EvidenceTable(props: {
  readonly one: FindingData;
  readonly byteUnit: ByteUnit;
}) {
  const { evidence, rule } = props.one;
  if (evidence.length === 0) return null;
  return (
    <details>
      <summary>
        Evidence: {evidence.length} {evidence.length === 1 ? "number" : "numbers"}
      </summary>
      <div class="table-scroll">
        <table class="data-table">
          <tbody>
            {evidence.map((number) => (
              <Row key={number.key} number={number} byteUnit={props.byteUnit} />
            ))}
          </tbody>
        </table>
      </div>
      {rule !== "" && <p class="quiet">Rule: {rule}.</p>}
    </details>
  );
}

function Row(props: { readonly number: Evidence; readonly byteUnit: ByteUnit }) {
  const { label, value, unit, scope, caveat, decisive } = props.number;
  return (
    <tr>
      <th scope="row" class={decisive ? "decisive" : undefined}>
        {label}
      </th>
      <td class="num" title={unit === "bytes" ? formatBytesExact(value) : undefined}>
        {formatQuantity(value, unit, props.byteUnit)}
      </td>
      <td class="quiet">
        {scope}
        {caveat !== "" && <em>; {caveat}</em>}
      </td>
    </tr>
  );
}

function Texts(props: { readonly title: string; readonly texts: readonly string[] }) {
  if (props.texts.length === 0) return null;
  return (
    <details>
      <summary>{props.title}</summary>
      <ul>
        {props.texts.map((text) => (
          <li key={text}>{text}</li>
        ))}
      </ul>
    </details>
  );
}

/** Several, the worst first. */
export function Findings(
  props: Omit<FindingProps, "one" | "isOpen"> & {
    readonly findings: readonly FindingData[];
    /** The first one is open. */
    readonly opensFirst?: boolean;
  },
) {
  const { findings, opensFirst = false, ...rest } = props;
  if (findings.length === 0) return null;
  return (
    <section class="findings" aria-label="Findings">
      {findings.map((one, at) => (
        // Not by its sentence: numbers change while it is being read.
        <Finding
          key={`${one.key} ${one.id}`}
          {...rest}
          one={one}
          isOpen={opensFirst && at === 0}
        />
      ))}
    </section>
  );
}
