/** The switch between the three horizontal axes. */

import type { XKind } from "../../../api/types.gen";
import { X_KINDS, X_WORDS } from "../../../model/lines/x_kind";

export function XSwitch(props: {
  readonly x: XKind;
  readonly setX: (x: XKind) => void;
}) {
  return (
    <div class="segmented" role="group" aria-label="Horizontal axis">
      {X_KINDS.map((kind) => (
        <button
          key={kind}
          type="button"
          class="button"
          aria-pressed={kind === props.x}
          onClick={() => props.setX(kind)}
        >
          {X_WORDS[kind]}
        </button>
      ))}
    </div>
  );
}
