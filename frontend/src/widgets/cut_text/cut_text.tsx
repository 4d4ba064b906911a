import type { ComponentChildren } from "preact";
import "./cut_text.css";

/** Characters of the end, which a narrow place shows too. */
const TAIL = 14;
/** Texts below it have no middle to cut. */
const SHORT = 2 * TAIL;

interface TailedText {
  readonly text: string;
  /** Its end, which is never cut. */
  readonly tail?: string;
}

/** A narrow place cuts its middle: a line of code keeps its number. */
export function withTail(text: string): TailedText {
  return text.length < SHORT ? { text } : { text, tail: text.slice(-TAIL) };
}

/** Where there is little room the part before `tail` is cut. */
export function cut({
  text,
  tail,
}: {
  readonly text: string;
  readonly tail?: string | undefined;
}): ComponentChildren {
  if (tail === undefined) return text;
  return (
    <span class="cut-text">
      <span class="cut">{text.slice(0, text.length - tail.length)}</span>
      <span>{tail}</span>
    </span>
  );
}
