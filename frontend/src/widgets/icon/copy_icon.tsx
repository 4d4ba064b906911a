/** A button that copies a text, and says so; where it cannot, by hand is left. */

import { useState } from "preact/hooks";
import { copyText } from "../../base/clipboard";
import { Icon } from "./icon";

export function CopyIcon(props: {
  /** What it does, for people who see no icon. */
  readonly label: string;
  readonly text: string;
}) {
  const [copied, setCopied] = useState<boolean | null>(null);
  return (
    <>
      <button
        type="button"
        class="icon-button small"
        aria-label={props.label}
        title={props.label}
        onClick={() => {
          void copyText(props.text).then(setCopied);
        }}
      >
        <Icon name={copied === true ? "check" : "copy"} />
      </button>
      <span class="off-screen" role="status">
        {copied === null ? "" : copied ? "Copied" : "Select and copy by hand"}
      </span>
    </>
  );
}
