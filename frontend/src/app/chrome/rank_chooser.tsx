/** Narrows every view to one rank, or draws some ranks only; lists ranks worth a look. */

import { useEffect, useRef, useState } from "preact/hooks";
import { formatRankSet, parseRankSet } from "../../base/rank_set";
import type { RankNote, RankReason } from "../../model/words/rank_notes";
import type { RankChoice } from "../../pages/shared/rank_choice";
import { Icon } from "../../widgets/icon/icon";

const REASON_WORDS: Readonly<Record<RankReason, string>> = {
  oom: "OOM",
  lost: "lost",
  highest: "highest",
  outlier: "outlier",
};

const REASON_SENTENCES: Readonly<Record<RankReason, string>> = {
  oom: "ran out of memory",
  lost: "ended without closing the recording",
  highest: "has the highest peak",
  outlier: "is far above the other ranks",
};

export interface RankChooserProps {
  readonly numRanks: number;
  /** Ranks that exist; null until known. */
  readonly known: Int32Array | null;
  readonly choice: RankChoice;
  readonly notes: readonly RankNote[];
  readonly chooseRank: (rank: number | null) => void;
  readonly setFilter: (ranks: string) => void;
  readonly setPinned: (ranks: readonly number[]) => void;
  /** Raised by one when the search box should take the focus. */
  readonly focused: number;
}

export function RankChooser(props: RankChooserProps) {
  const { choice } = props;
  const shown = choice.rank === null ? choice.filter : choice.rank.toString();
  const [draft, setDraft] = useState(shown);
  const [problem, setProblem] = useState<string | null>(null);
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => {
    setDraft(shown);
    setProblem(null);
  }, [shown]);
  useEffect(() => {
    if (props.focused > 0) input.current?.select();
  }, [props.focused]);
  const apply = (): void => {
    const result = readDraft(draft, props.known);
    setProblem(result.problem);
    if (result.problem !== null) return;
    if (result.rank === null && choice.rank !== null) props.chooseRank(null);
    if (result.rank !== null) props.chooseRank(result.rank);
    else props.setFilter(result.filter);
  };
  return (
    <section class="rail-section">
      <h2>
        <label for="rank-search">Ranks</label>
        <span class="quiet">{props.numRanks.toLocaleString("en-US")}</span>
      </h2>
      <form
        class="rank-search"
        onSubmit={(event) => {
          event.preventDefault();
          apply();
        }}
      >
        <Icon name="search" />
        <input
          id="rank-search"
          ref={input}
          type="text"
          autocomplete="off"
          spellcheck={false}
          placeholder="12 or 0-7,64"
          aria-invalid={problem !== null}
          aria-describedby="rank-search-help"
          value={draft}
          onInput={(event) => setDraft(event.currentTarget.value)}
          onBlur={() => {
            if (draft !== shown) apply();
          }}
          onKeyDown={(event) => {
            if (event.key !== "Escape") return;
            setDraft(shown);
            setProblem(null);
            event.currentTarget.blur();
          }}
        />
        {shown !== "" && (
          <button
            type="button"
            class="icon-button small"
            aria-label="Show all ranks"
            title="Show all ranks"
            onClick={() => {
              props.chooseRank(null);
              props.setFilter("");
            }}
          >
            <Icon name="cross" sizePx={12} />
          </button>
        )}
      </form>
      <p
        id="rank-search-help"
        class={problem === null ? "off-screen" : "field-problem"}
      >
        {problem ?? "One rank opens its page; a set such as 0-7,64 draws only these."}
      </p>
      <RankChips {...props} />
    </section>
  );
}

function RankChips({ notes, choice, chooseRank, setPinned }: RankChooserProps) {
  const pinned = choice.pinned.filter((rank) => !notes.some((n) => n.rank === rank));
  if (notes.length === 0 && pinned.length === 0) return null;
  return (
    <ul class="chips" aria-label="Ranks worth a look">
      {notes.map(({ rank, reasons }) => (
        <li key={rank}>
          <button
            type="button"
            class={`chip ${reasons.includes("oom") ? "bad" : ""}`}
            aria-pressed={choice.rank === rank}
            title={`Rank ${rank} ${reasons.map((r) => REASON_SENTENCES[r]).join(", ")}`}
            onClick={() => chooseRank(choice.rank === rank ? null : rank)}
          >
            <b>{rank}</b> {reasons[0] !== undefined && REASON_WORDS[reasons[0]]}
          </button>
        </li>
      ))}
      {pinned.map((rank) => (
        <li key={rank} class="chip-pair">
          <button
            type="button"
            class="chip"
            aria-pressed={choice.rank === rank}
            onClick={() => chooseRank(choice.rank === rank ? null : rank)}
          >
            <b>{rank}</b> pinned
          </button>
          <button
            type="button"
            class="icon-button small"
            aria-label={`Unpin rank ${rank}`}
            title={`Unpin rank ${rank}`}
            onClick={() => setPinned(choice.pinned.filter((other) => other !== rank))}
          >
            <Icon name="cross" sizePx={12} />
          </button>
        </li>
      ))}
    </ul>
  );
}

interface Draft {
  readonly rank: number | null;
  readonly filter: string;
  readonly problem: string | null;
}

/** One rank opens its page; more of them become the filter. */
export function readDraft(draft: string, known: Int32Array | null): Draft {
  const nothing = { rank: null, filter: "" };
  const parsed = parseRankSet(draft);
  if (!parsed.ok) return { ...nothing, problem: parsed.problem };
  const { ranks } = parsed;
  const missing = known === null ? [] : ranks.filter((rank) => !known.includes(rank));
  if (known !== null && ranks.length > 0 && missing.length === ranks.length) {
    const range = formatRankSet([...known]);
    const hint = range.length <= 40 ? ` This run has ${range}.` : "";
    const what = ranks.length === 1 ? `Rank ${ranks[0] ?? ""}` : "None of these ranks";
    const verb = ranks.length === 1 ? "is not" : "is";
    return { ...nothing, problem: `${what} ${verb} in this run.${hint}` };
  }
  const [only] = ranks;
  if (ranks.length === 1 && only !== undefined) {
    return { rank: only, filter: "", problem: null };
  }
  return { rank: null, filter: formatRankSet(ranks), problem: null };
}
