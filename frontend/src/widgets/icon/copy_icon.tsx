import { useState } from "preact/hooks";
import { copyText } from "../../base/browser";
import { IconButton } from "./icon";

export function CopyIcon(props: { readonly label: string; readonly text: string }) {
  const [copied, setCopied] = useState<boolean | null>(null);
  return (
    <>
      <IconButton
        icon={copied === true ? "check" : "copy"}
        label={props.label}
        onClick={() => void copyText(props.text).then(setCopied)}
      />
      <span class="off-screen" role="status">
        {copied === null
          ? ""
          : copied
            ? "Copied"
            : "Copying failed: select the text and copy it"}
      </span>
    </>
  );
}
