import { useEffect, useState } from "preact/hooks";
import type { RankStrip } from "../../api/types.gen";
import { formatInteger } from "../../base/bytes";
import { formatRankSet, parseRankSet } from "../../model/words/rank_set";
import { Icon, IconButton } from "../../widgets/icon/icon";
import type { Shell } from "../shell/shell";

const MAX_CHIPS = 10;
/** When half the job dies, a few ranks say as much as all. */
const MOST_PER_REASON = 4;

interface ChooserProps {
  readonly address: Shell["address"];
  /** null: still loading. */
  readonly strip: RankStrip | null;
  readonly numRanks: number;
}

export function RankChooser({ address, strip, numRanks }: ChooserProps) {
  const { place, go } = address;
  const shown = place.rank?.toString() ?? place.ranks;
  const [draft, setDraft] = useState(shown);
  const [problem, setProblem] = useState<string | null>(null);
  const reset = (): void => {
    setDraft(shown);
    setProblem(null);
  };
  useEffect(reset, [shown]);
  const apply = (): void => {
    const read = readDraft(draft, strip?.rank ?? null);
    setProblem(read.problem);
    if (read.problem !== null) return;
    go(read.rank === null ? { rank: null, ranks: read.filter } : { rank: read.rank });
  };
  return (
    <section>
      <h2>
        <label for="rank-search">Ranks</label>
        <span class="quiet">{formatInteger(numRanks)}</span>
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
          <IconButton
            icon="cross"
            sizePx={12}
            label="Show all ranks"
            onClick={() => go({ rank: null, ranks: "" })}
          />
        )}
      </form>
      <p
        id="rank-search-help"
        class={problem === null ? "off-screen" : "rail-note small tone-bad"}
      >
        {problem ?? "One rank opens its page; a set such as 0-7,64 draws only these."}
      </p>
      <RankChips address={address} strip={strip} />
    </section>
  );
}

interface Chip {
  readonly rank: number;
  readonly bad: boolean;
  readonly word: string;
  readonly title: string;
}

/** The most serious first, each once. */
export function rankChips(strip: RankStrip): readonly Chip[] {
  const all = [...strip.rank];
  const peak = strip.peakBytes.reduce((a, b) => (b > a ? b : a), -Infinity);
  const highest = all[strip.peakBytes.indexOf(peak)];
  const reasons = [
    ["OOM", "ran out of memory", all.filter((_, i) => (strip.numOoms[i] ?? 0) > 0)],
    ["outlier", "is far above the other ranks", strip.outliers],
    ["highest", "has the highest peak", highest === undefined ? [] : [highest]],
    [
      "lost",
      "ended without closing the recording",
      all.filter((_, i) => strip.lost[i] === 1),
    ],
  ] as const;
  const chips = new Map<number, Chip>();
  for (const [word, atLength, ranks] of reasons) {
    for (const rank of ranks.slice(0, MOST_PER_REASON).sort((a, b) => a - b)) {
      const chip = chips.get(rank);
      const title = `${chip === undefined ? `Rank ${rank}` : `${chip.title},`} ${atLength}`;
      chips.set(rank, { rank, bad: word === "OOM", word, ...chip, title });
    }
  }
  return [...chips.values()].slice(0, MAX_CHIPS);
}

function RankChips({ address, strip }: Pick<ChooserProps, "address" | "strip">) {
  const { chooseRank, setPinned } = address;
  const { pinned, rank: chosen } = address.place;
  const notes = strip === null ? [] : rankChips(strip);
  const others = pinned.filter((rank) => !notes.some((note) => note.rank === rank));
  const pins = others.map((rank) => ({
    rank,
    bad: false,
    word: "pinned",
    title: `Rank ${rank} is pinned`,
  }));
  if (notes.length + pins.length === 0) return null;
  return (
    <ul class="rank-chips" aria-label="Ranks worth a look">
      {[...notes, ...pins].map(({ rank, bad, word, title }) => (
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
          {others.includes(rank) && (
            <IconButton
              icon="cross"
              sizePx={12}
              label={`Unpin rank ${rank}`}
              onClick={() =>
                setPinned(pinned.filter((pinnedRank) => pinnedRank !== rank))
              }
            />
          )}
        </li>
      ))}
    </ul>
  );
}

/** One rank opens its page; several become the filter. */
export function readDraft(draft: string, runRanks: Int32Array | null) {
  const read = (rank: number | null, filter: string, problem: string | null) => ({
    rank,
    filter,
    problem,
  });
  const parsed = parseRankSet(draft);
  if (!parsed.ok) return read(null, "", parsed.problem);
  const { ranks } = parsed;
  const [only] = ranks;
  const isOne = only !== undefined && ranks.length === 1;
  if (
    only !== undefined &&
    runRanks !== null &&
    !ranks.some((r) => runRanks.includes(r))
  ) {
    const range = formatRankSet([...runRanks]);
    const hint = range.length <= 40 ? ` This run has ${range}.` : "";
    const subject = isOne ? `Rank ${only} is not` : "None of these ranks is";
    return read(null, "", `${subject} in this run.${hint}`);
  }
  return isOne ? read(only, "", null) : read(null, formatRankSet(ranks), null);
}
