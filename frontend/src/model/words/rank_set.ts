/** `0-7,64`, as in routes: closed ranges, free spaces; order and overlap do not matter. */

type RankSetResult =
  | { readonly ok: true; readonly ranks: readonly number[] }
  | { readonly ok: false; readonly problem: string };

/** Keeps "0-999999999999" from filling memory. */
const LARGEST_RANK = 1_048_575;

const no = (problem: string) => ({ ok: false, problem }) as const;

/** Ascending, without repeats. */
export function parseRankSet(text: string): RankSetResult {
  const ranks = new Set<number>();
  for (const part of text.split(",")) {
    const piece = part.trim();
    if (piece === "") continue;
    const match = /^(\d{1,9})(?:\s*-\s*(\d{1,9}))?$/.exec(piece);
    if (match === null) return no(`“${piece}” is no rank; write ranks as 0-7,64`);
    const first = Number(match[1]);
    const last = match[2] === undefined ? first : Number(match[2]);
    if (last < first) return no(`“${piece}” ends before it begins`);
    if (last > LARGEST_RANK) return no(`“${piece}” is above the largest rank`);
    for (let rank = first; rank <= last; rank++) ranks.add(rank);
  }
  return { ok: true, ranks: [...ranks].sort((a, b) => a - b) };
}

/** The shortest text for exactly these ranks. */
export function formatRankSet(ranks: readonly number[]): string {
  const sorted = [...new Set(ranks)].sort((a, b) => a - b);
  const parts: string[] = [];
  let start = 0;
  sorted.forEach((rank, i) => {
    if (sorted[i + 1] === rank + 1) return;
    const first = sorted[start];
    if (first !== undefined)
      parts.push(first === rank ? `${rank}` : `${first}-${rank}`);
    start = i + 1;
  });
  return parts.join(",");
}
