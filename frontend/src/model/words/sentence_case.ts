const ACRONYMS = new Map(
  ["CPU", "GPU", "RSS", "OOM"].map((word) => [word.toLowerCase(), word]),
);

/** `rank_lost` -> "Rank lost", with acronyms as they are written. */
export function sentenceCase(name: string): string {
  const words = name
    .split(/[_\s]+/)
    .filter(Boolean)
    .map((word) => ACRONYMS.get(word) ?? word);
  const [first = "", ...rest] = words;
  return [first.charAt(0).toUpperCase() + first.slice(1), ...rest].join(" ");
}
