import { withTail } from "../../../widgets/cut_text/cut_text";
import type { RowCell } from "../../../widgets/row_table/columns";

/** Longer names are cut in the middle. */
const MOST = 90;
const APART = " · ";
/** Limit of the part that distinguishes names folded alike. */
const MOST_APART = 28;

export function cutMiddle(text: string, most = MOST): string {
  if (text.length <= most) return text;
  const tail = Math.floor((most - 1) * 0.4);
  return `${text.slice(0, most - 1 - tail)}…${text.slice(text.length - tail)}`;
}

/** `void ampere_sgemm<float, 32>(int)` becomes `ampere_sgemm<…>`. */
export function foldTemplates(name: string): string {
  const open: Readonly<Record<string, string>> = { "<": ">", "(": ")" };
  // "Memcpy HtoD (Pageable -> Device)" has no parameters.
  if (!/\w(<.+>|\(.*\))/.test(name)) return name;
  let folded = "";
  const closes: string[] = [];
  const text = name
    .replace(/^void |\(anonymous namespace\)::/g, "")
    // These signs are not brackets.
    .replace(/\boperator(\(\)|->|<<|>>|[<>]=?)/g, "operator")
    .replace(/->/g, "");
  for (let index = 0; index < text.length; index += 1) {
    const character = text.charAt(index);
    const close = open[character];
    if (close !== undefined) {
      if (closes.length === 0 && character === "<") folded += "<…>";
      closes.push(close);
    } else if (closes.length > 0) {
      if (character === closes.at(-1)) closes.pop();
    } else folded += character;
  }
  return closes.length > 0 ? text : folded;
}

/** Names folded alike include what differs. */
export function shortNames(names: readonly string[]): readonly string[] {
  const alike = new Map<string, Set<string>>();
  for (const name of names) {
    const folded = foldTemplates(name);
    alike.set(folded, (alike.get(folded) ?? new Set()).add(name));
  }
  return names.map((name) => {
    const folded = foldTemplates(name);
    const others = [...(alike.get(folded) ?? [])];
    if (others.length < 2) return cutMiddle(folded);
    const apart = cutMiddle(apartFrom(name, others), MOST_APART);
    return `${cutMiddle(folded, MOST - apart.length - APART.length)}${APART}${apart}`;
  });
}

/** Narrow cells cut the middle too; hover shows the whole name. */
export function nameCells(
  names: readonly string[],
): (name: string, row: number) => RowCell {
  const short = shortNames(names);
  return (name, row) => {
    const text = short[row] ?? name;
    const apart = text.lastIndexOf(APART);
    if (apart < 0) return { ...withTail(text), title: name };
    return { text, title: name, tail: text.slice(apart) };
  };
}

/** The text between the start and the end that all share, in whole words. */
function apartFrom(name: string, all: readonly string[]): string {
  const shared = (of: (text: string) => string): number => {
    const own = of(name);
    let length = 0;
    while (
      length < own.length &&
      all.every((other) => of(other)[length] === own[length])
    )
      length += 1;
    return length;
  };
  const reversed = (text: string): string => Array.from(text).reverse().join("");
  const head = shared((text) => text);
  const tail = Math.min(shared(reversed), name.length - head);
  const isWord = (index: number): boolean => /[\w:]/.test(name[index] ?? "");
  let [from, to] = [head, name.length - tail];
  while (from > 0 && isWord(from - 1)) from -= 1;
  while (to < name.length && isWord(to)) to += 1;
  return name
    .slice(from, to)
    .replace(/\(anonymous namespace\)::|\w+::/g, "")
    .trim();
}
