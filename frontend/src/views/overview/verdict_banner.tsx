/**
 * Why memory ran out, on top of the Overview: the error, what was asked and free, who
 * held the memory, and what to try. All meaning comes from the server.
 */

import { useState } from "preact/hooks";
import type { OutOfMemory, VerdictResponse } from "../../api/types.gen";
import { formatInteger, type ByteUnit } from "../../base/bytes";
import { copyText } from "../../base/clipboard";
import type { Theme } from "../../base/tokens";
import { Icon } from "../../widgets/icon/icon";
import { VerdictDetails } from "./verdict_details";
import { VerdictFigures } from "./verdict_figures";
import { VerdictHolders } from "./verdict_holders";
import {
  CAUSES,
  chipWords,
  isAnalysing,
  openWords,
  titleParts,
  wordOf,
} from "./verdict_words";
import "./verdict.css";

export interface VerdictBannerProps {
  readonly verdict: VerdictResponse;
  /** What the strip says of all ranks; empty: nothing. */
  readonly strip: string;
  readonly theme: Theme;
  readonly byteUnit: ByteUnit;
  readonly showPage: (
    name: string,
    changes: Readonly<Record<string, string | null>>,
  ) => void;
  readonly say: (sentence: string) => void;
}

export function VerdictBanner(props: VerdictBannerProps) {
  const { ooms, numOoms } = props.verdict;
  const [chosen, setChosen] = useState("");
  const one = ooms.find(({ id }) => id === chosen) ?? ooms[0];
  if (one === undefined) return null;
  const waits = isAnalysing(one, props.verdict);
  return (
    <section class="oom" aria-labelledby="oom-title">
      <Head {...props} one={one} />
      {waits ? (
        <p class="oom-sentence quiet" role="status">
          Analysing the allocator’s history: the cause and its numbers come with it.
        </p>
      ) : (
        <p class="oom-sentence">{one.sentence}</p>
      )}
      {props.strip !== "" && <p class="oom-strip quiet">{props.strip}</p>}
      {one.isOutOfMemory && !waits && <Cause one={one} />}
      <VerdictFigures one={one} byteUnit={props.byteUnit} />
      <div class="oom-columns">
        <VerdictHolders one={one} theme={props.theme} byteUnit={props.byteUnit} />
        {!waits && <VerdictDetails one={one} byteUnit={props.byteUnit} />}
      </div>
      {ooms.length > 1 && (
        <Others ooms={ooms} numOoms={numOoms} chosen={one.id} choose={setChosen} />
      )}
    </section>
  );
}

function Head(props: VerdictBannerProps & { readonly one: OutOfMemory }) {
  const { one, say, showPage } = props;
  return (
    <header class="oom-head">
      <span class="status-bad">
        <Icon name="cross" sizePx={20} />
        <h2 id="oom-title">{wordOf(one)}</h2>
      </span>
      <p class="oom-where">{titleParts(one).join(" · ")}</p>
      <div class="oom-actions">
        {one.history !== null && (
          <button
            type="button"
            class="button"
            onClick={() => {
              showPage("allocations", openWords(one));
            }}
          >
            Open at the OOM
            <Icon name="right" />
          </button>
        )}
        <button
          type="button"
          class="button"
          onClick={() => {
            void copyText(one.report).then((copied) => {
              say(
                copied ? "The report was copied." : "The browser does not let us copy.",
              );
            });
          }}
        >
          <Icon name="copy" />
          Copy report
        </button>
      </div>
    </header>
  );
}

function Cause({ one }: { readonly one: OutOfMemory }) {
  const also = one.also.map((cause) => CAUSES[cause].name);
  return (
    <p class="oom-cause">
      <span class="oom-class">{CAUSES[one.cause].name}</span>
      <span class="quiet">
        {CAUSES[one.cause].meaning}
        {also.length > 0 && ` Also: ${also.join(", ")}.`}
      </span>
    </p>
  );
}

function Others(props: {
  readonly ooms: readonly OutOfMemory[];
  readonly numOoms: number;
  readonly chosen: string;
  readonly choose: (id: string) => void;
}) {
  const left = props.numOoms - props.ooms.length;
  return (
    <div class="oom-others">
      <span class="quiet">All, the one that ended the program first:</span>
      <ul class="chips">
        {props.ooms.map((one) => (
          <li key={one.id}>
            <button
              type="button"
              class="chip"
              aria-pressed={one.id === props.chosen}
              onClick={() => {
                props.choose(one.id);
              }}
            >
              {chipWords(one)}
            </button>
          </li>
        ))}
      </ul>
      {left > 0 && <span class="quiet">and {formatInteger(left)} more</span>}
    </div>
  );
}
