const ACRONYMS = new Map(
  ["CPU", "GPU", "RSS", "OOM"].map((word) => [word.toLowerCase(), word]),
);

/** `rank_lost` -> "Rank lost", with acronyms as they are written. */
export function sentenceCase(name: string): string {
  const parts = name
    .split(/[_\s]+/)
    .filter(Boolean)
    .map((word) => ACRONYMS.get(word) ?? word);
  const [first = "", ...rest] = parts;
  return [first.charAt(0).toUpperCase() + first.slice(1), ...rest].join(" ");
}
