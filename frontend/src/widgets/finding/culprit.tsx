/** A text in which the source line that a finding blames stands out, wherever it is named. */

import type { Finding } from "../../api/types.gen";

export function Culprit(props: {
  readonly of: Pick<Finding, "line">;
  readonly children: string;
}) {
  const parts = apart(props.children, props.of.line);
  return (
    <>
      {parts.map((part, at) =>
        at % 2 === 0 ? (
          part
        ) : (
          <span key={at} class="culprit">
            {part}
          </span>
        ),
      )}
    </>
  );
}

/** Odd parts are the line. A sentence may name it without the function. */
export function apart(text: string, line: string): readonly string[] {
  const [place] = line.split(" ");
  if (place === undefined || place === "") return [text];
  const escaped = [line, place].map((one) =>
    one.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"),
  );
  // Not a line whose number goes on: model.py:17 is not in model.py:177.
  return text.split(new RegExp(`((?:${escaped.join("|")})(?![\\d]))`));
}
