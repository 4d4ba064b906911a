/** A button that copies a text, and says so; where it cannot, by hand is left. */

import { useState } from "preact/hooks";
import { copyText } from "../../base/browser";
import { IconButton } from "./icon";

export function CopyIcon(props: {
  /** What it does, for people who see no icon. */
  readonly label: string;
  readonly text: string;
}) {
  const [copied, setCopied] = useState<boolean | null>(null);
  return (
    <>
      <IconButton
        icon={copied === true ? "check" : "copy"}
        label={props.label}
        onClick={() => void copyText(props.text).then(setCopied)}
      />
      <span class="off-screen" role="status">
        {copied === null ? "" : copied ? "Copied" : "Select and copy by hand"}
      </span>
    </>
  );
}
