import { copyText } from "../../base/browser";
import { useState } from "preact/hooks";
/** Strokes on a 20 px grid, in the colour of the text around them. */

const PATHS = {
  check: "M4 10.5 8 14.5 16 6",
  cross: "M5 5 15 15 M15 5 5 15",
  warning: "M10 3 18 17 H2 Z M10 8 V12 M10 14.4 V14.6",
  more: "M4.5 10 H4.6 M10 10 H10.1 M15.4 10 H15.5",
  minus: "M5 10 H15",
  plus: "M10 5 V15 M5 10 H15",
  fit: "M3 7 V3 H7 M13 3 H17 V7 M17 13 V17 H13 M7 17 H3 V13",
  height: "M10 3.5 V16.5 M6.5 7 10 3.5 13.5 7 M6.5 13 10 16.5 13.5 13",
  zero: "M3.5 16.5 H16.5 M10 13.5 V3.5 M6.5 7 10 3.5 13.5 7",
  chart: "M3.5 3.5 V16.5 H16.5 M6 13 9 8.5 12 11 16 5",
  info: "M10 2.5 A7.5 7.5 0 1 1 9.99 2.5 Z M10 9 V14 M10 6.2 V6.4",
  help: "M10 2.5 A7.5 7.5 0 1 1 9.99 2.5 Z M7.6 8 A2.4 2.4 0 1 1 10 10.6 V11.6 M10 14 V14.2",
  link: "M8.5 11.5 11.5 8.5 M9 6 11 4 A3.5 3.5 0 0 1 16 9 L14 11 M11 14 9 16 A3.5 3.5 0 0 1 4 11 L6 9",
  download: "M10 3 V12 M6 8.5 10 12.5 14 8.5 M3.5 16.5 H16.5",
  copy: "M7 7 H16 V17 H7 Z M4 13 V3 H13",
  sun: "M10 6.5 A3.5 3.5 0 1 1 9.99 6.5 Z M10 1.8 V3.6 M10 16.4 V18.2 M1.8 10 H3.6 M16.4 10 H18.2 M4.2 4.2 5.5 5.5 M14.5 14.5 15.8 15.8 M4.2 15.8 5.5 14.5 M14.5 5.5 15.8 4.2",
  moon: "M16.5 11.8 A7 7 0 1 1 8.2 3.5 A5.6 5.6 0 0 0 16.5 11.8 Z",
  auto: "M10 2.5 A7.5 7.5 0 1 1 9.99 2.5 Z M10 2.5 V17.5 M10 6 H14 M10 10 H17 M10 14 H15",
  search: "M9 3.5 A5.5 5.5 0 1 1 8.99 3.5 Z M13 13 17 17",
  left: "M12 4.5 6.5 10 12 15.5",
  right: "M8 4.5 13.5 10 8 15.5",
  down: "M4.5 7.5 10 13 15.5 7.5",
  swap: "M6.5 16 V4 M3.5 7 6.5 4 9.5 7 M13.5 4 V16 M10.5 13 13.5 16 16.5 13",
  play: "M6 4 16 10 6 16 Z",
  pause: "M7 4.5 V15.5 M13 4.5 V15.5",
  pin: "M7 3 H13 L12 9 L15 12 H5 L8 9 Z M10 12 V17.5",
  rail: "M3 4 H17 V16 H3 Z M8 4 V16",
  table: "M3 4 H17 V16 H3 Z M3 8 H17 M3 12 H17 M8.5 4 V16",
} as const;

export type IconName = keyof typeof PATHS;

/** Decoration: the control or word beside it has the meaning. */
export function Icon({
  name,
  sizePx = 16,
}: {
  readonly name: IconName;
  readonly sizePx?: number | undefined;
}) {
  return (
    <svg
      class="icon"
      width={sizePx}
      height={sizePx}
      viewBox="0 0 20 20"
      aria-hidden="true"
    >
      <path d={PATHS[name]} />
    </svg>
  );
}

export function IconButton(props: {
  readonly icon: IconName;
  readonly label: string;
  readonly onClick: (() => void) | undefined;
  /** On hover, instead of the label. */
  readonly title?: string;
  readonly large?: boolean;
  readonly sizePx?: number;
  readonly pressed?: boolean;
  readonly disabled?: boolean;
}) {
  return (
    <button
      type="button"
      class={props.large === true ? "icon-button" : "icon-button small"}
      aria-label={props.label}
      title={props.title ?? props.label}
      aria-pressed={props.pressed}
      disabled={props.disabled}
      onClick={props.onClick}
    >
      <Icon name={props.icon} sizePx={props.sizePx} />
    </button>
  );
}

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

export function CopyMarkdownButton(props: {
  readonly subject: string;
  readonly large?: boolean;
  readonly onClick: () => void;
}) {
  return (
    <IconButton
      large={props.large ?? false}
      icon="copy"
      label={`Copy as Markdown: ${props.subject}`}
      title="Copy as Markdown"
      onClick={props.onClick}
    />
  );
}

export interface StatusLook {
  readonly word: string;
  readonly icon: IconName;
  readonly tone: "ok" | "warn" | "bad" | "quiet";
}

/** Never colour alone. */
export function Status({ look }: { readonly look: StatusLook }) {
  return (
    <span class={`status-${look.tone}`}>
      <Icon name={look.icon} />
      {look.word}
    </span>
  );
}
