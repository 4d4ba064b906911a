/** Sets of ranks as people write them: "0-7,64". */

export type RankSet =
  | { readonly ok: true; readonly ranks: readonly number[] }
  | { readonly ok: false; readonly error: string };

/** More than this cannot be meant by hand, and must not be built by accident. */
const MOST_RANKS = 1_000_000;

const PART = /^(\d+)(?:-(\d+))?$/;

/** Parse "0-7,64" into ascending ranks without repeats; "" is the empty set. */
export function parseRanks(text: string): RankSet {
  const ranks = new Set<number>();
  for (const raw of text.split(/[,\s]+/)) {
    if (raw === "") continue;
    const match = PART.exec(raw);
    if (match === null) {
      return { ok: false, error: `"${raw}" is not a rank or a range such as 0-7` };
    }
    const low = Number(match[1]);
    const high = match[2] === undefined ? low : Number(match[2]);
    if (high < low) {
      return {
        ok: false,
        error: `"${raw}" ends before it starts: write ${high}-${low}`,
      };
    }
    if (high - low + ranks.size >= MOST_RANKS) {
      return { ok: false, error: `"${raw}" holds too many ranks` };
    }
    for (let rank = low; rank <= high; rank += 1) ranks.add(rank);
  }
  return { ok: true, ranks: [...ranks].sort((a, b) => a - b) };
}

/** The shortest text of a set of ranks: runs of three and more become ranges. */
export function formatRanks(ranks: readonly number[]): string {
  const sorted = [...new Set(ranks)].sort((a, b) => a - b);
  const parts: string[] = [];
  for (let i = 0; i < sorted.length;) {
    let end = i;
    while (sorted[end + 1] === (sorted[end] ?? NaN) + 1) end += 1;
    const low = sorted[i] ?? 0;
    const high = sorted[end] ?? 0;
    if (end - i >= 2) parts.push(`${low}-${high}`);
    else for (let k = i; k <= end; k += 1) parts.push(String(sorted[k]));
    i = end + 1;
  }
  return parts.join(",");
}
