/**
 * `forward >100MiB`: larger blocks with a frame or file like `forward`; `-adam`
 * excludes; `file:`, `frame:` and `module:` say where to search.
 */

import type { CallStacks } from "./stacks/call_stacks";

type Place = "any" | "frame" | "file" | "module";

interface Term {
  readonly place: Place;
  /** In lower case. */
  readonly text: string;
  readonly wanted: boolean;
}

interface BlockSearch {
  readonly terms: readonly Term[];
  /** Bytes; both ends included. */
  readonly least: number;
  readonly most: number;
  readonly problems: readonly string[];
}

const UNIT: Readonly<Record<string, number>> = { "": 0, b: 0, k: 1, m: 2, g: 3, t: 4 };
const SIZE = /^(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?$/i;

/** Bytes of `100MiB`, `1.5g`, `4096`; null: no size. IEC: 1 k is 1,024. */
export function parseSize(text: string): number | null {
  const match = SIZE.exec(text.trim());
  if (match === null) return null;
  const power = UNIT[(match[2] ?? "").toLowerCase()] ?? 0;
  return Number(match[1]) * 1024 ** power;
}

/** Further terms are ignored. */
const MOST_TERMS = 16;

/** Quoted text is one word. */
function wordsOf(text: string): readonly string[] {
  return [...text.matchAll(/[^\s"]*"[^"]*"?|[^\s"]+/g)].map(([word]) => word);
}

export function parseSearch(text: string): BlockSearch {
  const terms: Term[] = [];
  const problems: string[] = [];
  let [least, most] = [0, Infinity];
  for (const word of wordsOf(text)) {
    const size = /^(>=|<=|>|<|=)(.*)$/.exec(word);
    if (size === null) {
      const term = termOf(word);
      if (term !== null && terms.length < MOST_TERMS) terms.push(term);
      continue;
    }
    const bytes = parseSize(size[2] ?? "");
    if (bytes === null) {
      problems.push(`“${size[2] ?? ""}” is no size; write it like 100MiB or 4096.`);
      continue;
    }
    const sign = size[1] ?? "";
    if (sign !== "<" && sign !== "<=")
      least = Math.max(least, sign === ">" ? Math.floor(bytes) + 1 : bytes);
    if (sign !== ">" && sign !== ">=")
      most = Math.min(most, sign === "<" ? Math.ceil(bytes) - 1 : bytes);
  }
  return { terms, least, most, problems };
}

function termOf(word: string): Term | null {
  const wanted = !word.startsWith("-");
  const rest = wanted ? word : word.slice(1);
  const placed = /^(frame|file|module):(.*)$/i.exec(rest);
  const place = (placed?.[1]?.toLowerCase() ?? "any") as Place;
  const text = (placed?.[2] ?? rest).replaceAll('"', "").toLowerCase();
  return text === "" ? null : { place, text, wanted };
}

export function isEmptySearch({ terms, least, most }: BlockSearch): boolean {
  return terms.length === 0 && least <= 0 && most === Infinity;
}

export function sizeMatches({ least, most }: BlockSearch, bytes: number): boolean {
  return bytes >= least && bytes <= most;
}

/** 1 where the frame itself holds one of the words. */
export function matchingFrames(search: BlockSearch, stacks: CallStacks): Uint8Array {
  const wanted = search.terms.filter((term) => term.wanted && term.place !== "module");
  return Uint8Array.from(frameBits(wanted, stacks), (bits) => Number(bits !== 0));
}

/** By stack, and one more at the end for blocks without one: 1 where the words match. */
export function matchingStacks(search: BlockSearch, stacks: CallStacks): Uint8Array {
  const { terms } = search;
  const inFrame = frameBits(terms, stacks);
  const inModule = bitsOfTexts(terms, "module", stacks);
  const wanted = terms.reduce((bits, term, i) => bits | (Number(term.wanted) << i), 0);
  const matches = new Uint8Array(stacks.numStacks + 1);
  for (let stack = 0; stack < stacks.numStacks; stack += 1) {
    let bits = inModule(stacks.moduleText(stack));
    for (const frame of stacks.of(stack)) bits |= inFrame[frame] ?? 0;
    matches[stack] = Number(bits === wanted);
  }
  matches[stacks.numStacks] = Number(wanted === 0);
  return matches;
}

/** By frame: bit i where term i matches. */
function frameBits(terms: readonly Term[], stacks: CallStacks): Uint32Array {
  const inName = bitsOfTexts(terms, "frame", stacks);
  const inFile = bitsOfTexts(terms, "file", stacks);
  return Uint32Array.from({ length: stacks.numFrames }, (_, frame) => {
    const [name, file] = stacks.textsOf(frame);
    return inName(name) | inFile(file);
  });
}

/** By text: bit i where term i matches. Texts repeat: each is searched once. */
function bitsOfTexts(
  terms: readonly Term[],
  place: Place,
  stacks: CallStacks,
): (text: number) => number {
  const bitsByText = new Map<number, number>();
  return (text) => {
    let bits = bitsByText.get(text);
    if (bits === undefined) {
      const lower = (stacks.strings[text] ?? "").toLowerCase();
      const isIn = (term: Term): boolean =>
        (term.place === "any" || term.place === place) && lower.includes(term.text);
      bits = terms.reduce((sum, term, i) => sum | (Number(isIn(term)) << i), 0);
      bitsByText.set(text, bits);
    }
    return bits;
  };
}

/** `stack` below 0: no stack. */
export function stackMatches(matches: Uint8Array, stack: number): boolean {
  return matches[stack < 0 ? matches.length - 1 : stack] === 1;
}
