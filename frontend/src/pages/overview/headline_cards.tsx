import type { Headline } from "../../api/types.gen";
import { formatByteRange, formatInteger, type ByteUnit } from "../../base/bytes";
import { formatExact, formatQuantity } from "../../model/words/quantity";
import { asSentence } from "../../model/words/source_label";
import { Icon } from "../../widgets/icon/icon";
import { Sparkline } from "../../widgets/sparkline/sparkline";
import { Tip } from "../../widgets/tip/tip";
import { TextButton } from "../shared/controls/choices";
import type { ViewProps } from "../shared/view_props";

export function HeadlineCards(props: {
  readonly view: ViewProps;
  readonly headlines: readonly Headline[];
}) {
  return (
    <ul class="cards" aria-label="Headline numbers">
      {props.headlines.map((headline) => (
        <Card key={headline.key} view={props.view} of={headline} />
      ))}
    </ul>
  );
}

function Card(props: { readonly view: ViewProps; readonly of: Headline }) {
  const { of, view } = props;
  const caveats = of.caveats.map(asSentence);
  return (
    <li class="card">
      <div class="card-title quiet">
        <Tip text={of.meaning} focusable>
          <span class="cut">{of.title}</span>
        </Tip>
        {caveats.length > 0 && (
          <Tip
            class="caveat"
            text={caveats.map((sentence) => (
              <div key={sentence}>{sentence}</div>
            ))}
            focusable
          >
            <Icon name="info" sizePx={14} />
            <span class="off-screen">{caveats.join(" ")}</span>
          </Tip>
        )}
      </div>
      {of.value === null ? (
        <p class="quiet">{asSentence(of.absentReason ?? "not recorded")}</p>
      ) : (
        <>
          <div class="card-value nowrap">
            <Tip text={exactly(of)}>
              <Value text={shortly(of, view.byteUnit)} />
            </Tip>
          </div>
          <p class="cut quiet">
            <Where {...props} />
          </p>
          {of.sparkline.length > 0 && (
            <Tip text={of.line} class="card-line">
              <Sparkline values={of.sparkline} label={of.line} />
            </Tip>
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

function shortly({ value, otherEnd, unit }: Headline, byteUnit: ByteUnit): string {
  if (value !== null && otherEnd !== null) {
    return formatByteRange(value, otherEnd, byteUnit);
  }
  const signed = unit === "bytes_per_step" && (value ?? 0) > 0 ? "+" : "";
  return signed + formatQuantity(value, unit, byteUnit);
}

/** Separate, so that the unit can be lighter. */
function Value({ text }: { readonly text: string }) {
  const gap = text.search(/[\s/][^\d]*$/);
  if (gap < 0) return <span>{text}</span>;
  return (
    <span>
      {text.slice(0, gap)}
      <small>{text.slice(gap)}</small>
    </span>
  );
}

/** With a chosen rank the cards need not name it. */
function Where({ of, view: { ranks, chooseRank } }: Parameters<typeof Card>[0]) {
  const step =
    of.otherEnd !== null
      ? "estimated"
      : of.step === null
        ? ""
        : `step ${formatInteger(of.step)}`;
  const worst = of.rank;
  if (worst === null || worst === ranks.rank)
    return <>{step === "" ? "\u00a0" : step}</>;
  return (
    <>
      <TextButton press={() => chooseRank(worst)}>rank {worst}</TextButton>
      {step !== "" && ` · ${step}`}
    </>
  );
}
