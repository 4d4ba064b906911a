/** Never colour alone. */

import { Icon, type IconName } from "../icon/icon";

export interface StatusLook {
  readonly word: string;
  readonly icon: IconName;
  readonly tone: "ok" | "warn" | "bad" | "quiet";
}

export function Status({ look }: { readonly look: StatusLook }) {
  return (
    <span class={`status-${look.tone}`}>
      <Icon name={look.icon} />
      {look.word}
    </span>
  );
}
