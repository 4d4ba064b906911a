/** A number field for events: rendering does not disturb typing. */

import { useState } from "preact/hooks";

interface EventFieldProps {
  readonly label: string;
  readonly shown: string;
  readonly placeholder?: string;
  /** Called on Enter or blur with a finite number or `start`. */
  readonly onEvent: (event: number) => void;
  readonly class?: string;
}

/** `start` is the moment before all events; null: not a number. */
export function eventOf(text: string): number | null {
  const digits = text.replaceAll(/[\s,]/g, "").toLowerCase();
  if (digits === "start") return -1;
  const typed = Number(digits);
  return digits !== "" && Number.isFinite(typed) ? typed : null;
}

export function EventField(props: EventFieldProps) {
  const [draft, setDraft] = useState<string | null>(null);
  const confirm = (): void => {
    setDraft(null);
    const typed = eventOf(draft ?? "");
    if (typed !== null) props.onEvent(typed);
  };
  return (
    <input
      type="text"
      class={props.class}
      inputMode="numeric"
      autocomplete="off"
      aria-label={props.label}
      placeholder={props.placeholder}
      value={draft ?? props.shown}
      onInput={(event) => setDraft(event.currentTarget.value)}
      onBlur={confirm}
      onKeyDown={(event) => {
        if (event.key === "Enter") confirm();
        if (event.key === "Escape") setDraft(null);
      }}
    />
  );
}
