import type { XKind } from "../../../api/types.gen";
import { X_KINDS, X_WORDS } from "../../../model/lines/axis";
import { Segmented } from "./choices";

export function XSwitch(props: {
  readonly x: XKind;
  readonly setX: (x: XKind) => void;
}) {
  return (
    <Segmented
      label="Horizontal axis"
      options={X_KINDS}
      chosen={props.x}
      words={(kind) => [X_WORDS[kind], ""]}
      onChoose={props.setX}
    />
  );
}
