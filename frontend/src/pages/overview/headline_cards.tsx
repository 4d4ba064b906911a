/** The headline numbers: value, where it was worst, its shape over the run, its caveat. */

import type { Headline, Unit } from "../../api/types.gen";
import { formatByteRange, formatInteger, type ByteUnit } from "../../base/bytes";
import { asSentence } from "../../model/words/source_label";
import { formatExact, formatQuantity } from "../../model/words/quantity";
import { Icon } from "../../widgets/icon/icon";
import { Sparkline } from "../../widgets/sparkline/sparkline";
import { Tip } from "../../widgets/tip/tip";
import { CAVEATS, HEADLINES } from "./headline_words";

export interface HeadlineCardsProps {
  readonly headlines: readonly Headline[];
  readonly byteUnit: ByteUnit;
  /** The numbers of all ranks, where `headlines` are one rank's. */
  readonly whole: readonly Headline[];
  /** Set while one rank is chosen: the cards need not name it again. */
  readonly rank: number | null;
  readonly chooseRank: (rank: number) => void;
}

export function HeadlineCards(props: HeadlineCardsProps) {
  return (
    <ul class="cards" aria-label="Headline numbers">
      {props.headlines.map((headline) => (
        <Card key={headline.key} headline={headline} {...props} />
      ))}
    </ul>
  );
}

function Card(props: HeadlineCardsProps & { readonly headline: Headline }) {
  const { headline, byteUnit } = props;
  const words = HEADLINES[headline.key];
  const line = words.line ?? `The line: ${words.title}, over the run.`;
  return (
    <li class="card">
      <div class="card-title">
        <Tip text={words.meaning} focusable>
          <span class="explained">{words.title}</span>
        </Tip>
        {headline.caveats.length > 0 && <CaveatMark headline={headline} />}
      </div>
      {headline.value === null ? (
        <p class="card-absent">{absence(props)}</p>
      ) : (
        <>
          <div class="card-value">
            <Tip text={exactly(headline)}>
              <Value {...headline} value={headline.value} byteUnit={byteUnit} />
            </Tip>
          </div>
          <p class="card-where quiet">
            <Where {...props} />
          </p>
          {headline.sparkline.length > 0 && (
            <div class="card-line">
              <Tip text={line} class="card-tip">
                <Sparkline values={headline.sparkline} label={line} />
              </Tip>
            </div>
          )}
        </>
      )}
    </li>
  );
}

function exactly({ value, otherEnd, unit }: Headline): string {
  return otherEnd === null
    ? formatExact(value, unit)
    : `estimated: from ${formatExact(value, unit)} to ${formatExact(otherEnd, unit)}`;
}

function absence({ headline, whole, rank }: Parameters<typeof Card>[0]): string {
  const other = whole.find((one) => one.key === headline.key);
  return rank !== null && other !== undefined && other.value !== null
    ? "Recorded by another rank of this run."
    : asSentence(headline.absentReason ?? "not recorded");
}

/** Number and unit apart, so the unit can stand back. */
function Value(props: {
  readonly value: number;
  readonly unit: Unit;
  readonly otherEnd: number | null;
  readonly byteUnit: ByteUnit;
}) {
  const { value, unit, otherEnd, byteUnit } = props;
  const text =
    otherEnd === null
      ? formatQuantity(value, unit, byteUnit)
      : formatByteRange(value, otherEnd, byteUnit);
  const gap = otherEnd === null ? text.search(/[\s/]/) : text.lastIndexOf(" ");
  const signed = unit === "bytes_per_step" && value > 0 ? "+" : "";
  return (
    <span>
      {signed}
      {gap < 0 ? text : text.slice(0, gap)}
      {gap >= 0 && <small>{text.slice(gap)}</small>}
    </span>
  );
}

function Where({ headline, rank, chooseRank }: Parameters<typeof Card>[0]) {
  const step =
    headline.otherEnd !== null
      ? "estimated"
      : headline.step === null
        ? ""
        : `step ${formatInteger(headline.step)}`;
  const worst = headline.rank;
  if (worst === null || worst === rank) return <>{step === "" ? "\u00a0" : step}</>;
  return (
    <>
      <button type="button" class="text-button" onClick={() => chooseRank(worst)}>
        rank {worst}
      </button>
      {step !== "" && ` · ${step}`}
    </>
  );
}

function CaveatMark({ headline }: { readonly headline: Headline }) {
  const sentences = headline.caveats.map((caveat) => CAVEATS[caveat]);
  return (
    <Tip
      class="caveat"
      text={sentences.map((sentence) => (
        <div key={sentence}>{sentence}</div>
      ))}
      focusable
    >
      <Icon name="info" sizePx={14} />
      <span class="off-screen">{sentences.join(" ")}</span>
    </Tip>
  );
}
