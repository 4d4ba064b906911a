/** All texts come from the server. */

import { Fragment } from "preact";
import { useId, useState } from "preact/hooks";
import type { Advice, Finding as FindingData } from "../../api/types.gen";
import { counted } from "../../base/bytes";
import type { ByteUnit } from "../../base/bytes";
import type { Theme } from "../../base/tokens";
import { formatExact, formatQuantity } from "../../model/words/quantity";
import { Facts } from "../facts/facts";
import { CopyIcon, CopyMarkdownButton, Icon, type IconName } from "../icon/icon";
import { HeldBy } from "./held_by";
import { apart, openPlace, whereParts, type PlaceOpener } from "./place";
import "./finding.css";

const LOOKS: Readonly<Record<FindingData["severity"], readonly [IconName, string]>> = {
  error: ["cross", "status-bad"],
  warning: ["warning", "status-warn"],
  info: ["info", "status-quiet"],
};

const PER: Readonly<Partial<Record<FindingData["unit"], string>>> = {
  seconds: " per step",
  percent: " of the steps",
};

interface FindingsProps extends PlaceOpener {
  readonly theme: Theme;
  readonly byteUnit: ByteUnit;
  readonly copyMarkdown: (markdown: string) => void;
  readonly findings: readonly FindingData[];
  readonly opensFirst?: boolean;
}

export function Findings(props: FindingsProps) {
  const { findings, opensFirst = false } = props;
  if (findings.length === 0) return null;
  return (
    <section class="findings" aria-label="Findings">
      {findings.map((finding, index) => (
        // Not keyed by its sentence: numbers change while it is read.
        <Finding
          key={`${finding.key} ${finding.id}`}
          {...props}
          finding={finding}
          opens={opensFirst && index === 0}
        />
      ))}
    </section>
  );
}

type FindingProps = FindingsProps & { readonly finding: FindingData };

function Finding(props: FindingProps & { readonly opens: boolean }) {
  const { finding } = props;
  const { state, advice } = finding;
  const [chosen, setChosen] = useState<boolean | null>(null);
  const isOpen = chosen ?? props.opens;
  const id = useId();
  const showModules = (): void => {
    if (finding.rank !== null) props.chooseRank(finding.rank);
    props.showPage("modules", {});
  };
  return (
    <article class={`finding ${finding.severity} ${isOpen ? "open" : ""}`}>
      <Head {...props} isOpen={isOpen} body={id} toggle={() => setChosen(!isOpen)} />
      {isOpen && (
        <div id={id} class="finding-body">
          <p class="finding-sentence">
            <Blaming line={finding.line} text={finding.sentence} />
            {finding.also.length > 0 && (
              <span class="quiet"> Also: {finding.also.join(", ")}.</span>
            )}
          </p>
          <div class="finding-columns">
            {state !== null && (
              <HeldBy
                state={state}
                line={finding.line}
                theme={props.theme}
                byteUnit={props.byteUnit}
                showModules={state.origin === "file" ? null : showModules}
              />
            )}
            <div>
              {advice.length > 0 && (
                <>
                  <h3>What to try</h3>
                  <ol>
                    {advice.map((each) => (
                      <Try key={each.text + each.setting} {...props} advice={each} />
                    ))}
                  </ol>
                </>
              )}
              <div class="row finding-more">
                <EvidenceTable finding={finding} byteUnit={props.byteUnit} />
                <Texts title="More ranks" texts={finding.others} />
                <Texts title="Not recorded" texts={finding.notRecorded} />
              </div>
            </div>
          </div>
        </div>
      )}
    </article>
  );
}

export function Blaming(props: { readonly line: string; readonly text: string }) {
  return (
    <>
      {apart(props.text, props.line).map((part, index) => (
        <span key={index} class={index % 2 === 0 ? undefined : "culprit"}>
          {part}
        </span>
      ))}
    </>
  );
}

function Head(
  props: FindingProps & {
    readonly isOpen: boolean;
    readonly body: string;
    readonly toggle: () => void;
  },
) {
  const { finding, isOpen } = props;
  const { place, cost } = finding;
  const [icon, tone] = LOOKS[finding.severity];
  const row = finding.short === "" ? finding.sentence : finding.short;
  const sentence = isOpen ? finding.sentence : row;
  const where = whereParts(finding).filter((part) => !says(sentence, part));
  return (
    <header class="row finding-head">
      <h2 class={tone}>
        <button
          type="button"
          aria-expanded={isOpen}
          aria-controls={isOpen ? props.body : undefined}
          onClick={props.toggle}
        >
          <Icon name={icon} sizePx={18} />
          {finding.title}
        </button>
      </h2>
      <p class="finding-where quiet">
        {where.map((part, index) => (
          <Fragment key={part}>
            {index > 0 && " · "}
            <span class="nowrap">
              <Blaming line={finding.line} text={part} />
            </span>
          </Fragment>
        ))}
        {!isOpen && (
          <>
            {where.length > 0 && " — "}
            <Blaming line={finding.line} text={sentence} />
          </>
        )}
      </p>
      {cost !== null && cost > 0 && (
        <b class="nowrap" title="Cost">
          {formatQuantity(cost, finding.unit, props.byteUnit)}
          {PER[finding.unit]}
        </b>
      )}
      {place !== null && (
        <button type="button" class="button" onClick={() => openPlace(place, props)}>
          {place.label}
          <Icon name="right" />
        </button>
      )}
      <CopyMarkdownButton
        subject={finding.title}
        onClick={() => props.copyMarkdown(finding.markdown)}
      />
    </header>
  );
}

/** "rank 1" is not in "rank 12". */
function says(sentence: string, part: string): boolean {
  const start = sentence.toLowerCase().indexOf(part.toLowerCase());
  return start >= 0 && !/\d/.test(sentence[start + part.length] ?? "");
}

function Try({
  finding,
  byteUnit,
  advice,
}: FindingProps & { readonly advice: Advice }) {
  const { text, gain, unit, setting } = advice;
  return (
    <li>
      <Blaming line={finding.line} text={text} />
      {gain !== null && (
        <b class="nowrap" title={formatExact(gain, unit)}>
          {" "}
          up to {formatQuantity(gain, unit, byteUnit)}
          {PER[unit]}
        </b>
      )}
      {setting !== "" && (
        <div>
          <code>{setting}</code> <CopyIcon label="Copy the setting" text={setting} />
        </div>
      )}
    </li>
  );
}

function EvidenceTable(props: {
  readonly finding: FindingData;
  readonly byteUnit: ByteUnit;
}) {
  const { evidence, rule } = props.finding;
  if (evidence.length === 0) return null;
  return (
    <details>
      <summary>Evidence: {counted(evidence.length, "number")}</summary>
      <Facts
        label="Evidence"
        numeric
        rows={evidence.map(({ label, decisive, value, unit, scope, caveat }) => [
          decisive ? <b>{label}</b> : label,
          <span title={formatExact(value, unit)}>
            {formatQuantity(value, unit, props.byteUnit)}
          </span>,
          <>
            {scope}
            {caveat !== "" && <em>; {caveat}</em>}
          </>,
        ])}
      />
      {rule !== "" && <p class="quiet">Rule: {rule}.</p>}
    </details>
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
