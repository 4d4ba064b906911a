/** Narrows every view to one rank, or draws some ranks only; lists ranks worth a look. */

import { useEffect, useState } from "preact/hooks";
import type { RunSummary } from "../../api/types.gen";
import { formatInteger } from "../../base/bytes";
import { formatRankSet, parseRankSet } from "../../base/rank_set";
import { rankNotes, type RankReason } from "../../model/words/rank_notes";
import { Icon } from "../../widgets/icon/icon";
import type { Shell } from "../shell";

const MAX_CHIPS = 10;

/** On the chip, and at length. */
const REASON_WORDS: Readonly<Record<RankReason, readonly [string, string]>> = {
  oom: ["OOM", "ran out of memory"],
  lost: ["lost", "ended without closing the recording"],
  highest: ["highest", "has the highest peak"],
  outlier: ["outlier", "is far above the other ranks"],
};

interface ChooserProps {
  readonly shell: Shell;
  readonly run: RunSummary;
}

export function RankChooser({ shell, run }: ChooserProps) {
  const { place, go } = shell;
  const shown = place.rank?.toString() ?? place.ranks;
  const [draft, setDraft] = useState(shown);
  const [problem, setProblem] = useState<string | null>(null);
  const reset = (): void => {
    setDraft(shown);
    setProblem(null);
  };
  useEffect(reset, [shown]);
  const apply = (): void => {
    const read = readDraft(draft, shell.strip?.rank ?? null);
    setProblem(read.problem);
    if (read.problem !== null) return;
    go(read.rank === null ? { rank: null, ranks: read.filter } : { rank: read.rank });
  };
  return (
    <section>
      <h2>
        <label for="rank-search">Ranks</label>
        <span class="quiet">{formatInteger(run.numRanks)}</span>
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
          type="text"
          autocomplete="off"
          spellcheck={false}
          placeholder="12 or 0-7,64"
          aria-invalid={problem !== null}
          aria-describedby="rank-search-help"
          value={draft}
          onFocus={(event) => event.currentTarget.select()}
          onInput={(event) => setDraft(event.currentTarget.value)}
          onBlur={() => {
            if (draft !== shown) apply();
          }}
          onKeyDown={(event) => {
            if (event.key !== "Escape") return;
            reset();
            event.currentTarget.blur();
          }}
        />
        {shown !== "" && (
          <Cross label="Show all ranks" press={() => go({ rank: null, ranks: "" })} />
        )}
      </form>
      <p
        id="rank-search-help"
        class={problem === null ? "off-screen" : "rail-note small tone-bad"}
      >
        {problem ?? "One rank opens its page; a set such as 0-7,64 draws only these."}
      </p>
      <RankChips shell={shell} />
    </section>
  );
}

function RankChips({ shell }: Pick<ChooserProps, "shell">) {
  const { pinned, rank: chosen } = shell.place;
  const { chooseRank } = shell;
  const notes = shell.strip === null ? [] : rankNotes(shell.strip, MAX_CHIPS);
  const others = pinned.filter((rank) => !notes.some((note) => note.rank === rank));
  const chips = [
    ...notes.map(({ rank, reasons: [first = "highest", ...rest] }) => ({
      ...{ rank, bad: first === "oom", word: REASON_WORDS[first][0], isPinned: false },
      title: `Rank ${rank} ${[first, ...rest].map((one) => REASON_WORDS[one][1]).join(", ")}`,
    })),
    ...others.map((rank) => ({
      ...{ rank, bad: false, word: "pinned", isPinned: true },
      title: `Rank ${rank} is pinned`,
    })),
  ];
  if (chips.length === 0) return null;
  return (
    <ul class="rank-chips" aria-label="Ranks worth a look">
      {chips.map(({ rank, bad, word, title, isPinned }) => (
        <li key={rank} class="nowrap">
          <button
            type="button"
            class={bad ? "chip tone-bad" : "chip"}
            aria-pressed={chosen === rank}
            title={title}
            onClick={() => chooseRank(chosen === rank ? null : rank)}
          >
            <b>{rank}</b> {word}
          </button>
          {isPinned && (
            <Cross
              label={`Unpin rank ${rank}`}
              press={() => shell.view.setPinned(pinned.filter((one) => one !== rank))}
            />
          )}
        </li>
      ))}
    </ul>
  );
}

function Cross(props: { readonly label: string; readonly press: () => void }) {
  return (
    <button
      type="button"
      class="icon-button small"
      aria-label={props.label}
      title={props.label}
      onClick={props.press}
    >
      <Icon name="cross" sizePx={12} />
    </button>
  );
}

/** One rank opens its page; more of them become the filter. */
export function readDraft(draft: string, known: Int32Array | null) {
  const read = (rank: number | null, filter: string, problem: string | null) => ({
    ...{ rank, filter, problem },
  });
  const parsed = parseRankSet(draft);
  if (!parsed.ok) return read(null, "", parsed.problem);
  const { ranks } = parsed;
  const [only] = ranks;
  const isOne = only !== undefined && ranks.length === 1;
  if (only !== undefined && known !== null && !ranks.some((r) => known.includes(r))) {
    const range = formatRankSet([...known]);
    const hint = range.length <= 40 ? ` This run has ${range}.` : "";
    const what = isOne ? `Rank ${only} is not` : "None of these ranks is";
    return read(null, "", `${what} in this run.${hint}`);
  }
  return isOne ? read(only, "", null) : read(null, formatRankSet(ranks), null);
}
