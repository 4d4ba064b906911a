/** The number of an event, typed: whatever is drawn meanwhile leaves the typing alone. */

import { useState } from "preact/hooks";

interface EventFieldProps {
  readonly label: string;
  /** What is chosen, as text. */
  readonly shown: string;
  readonly placeholder?: string;
  /** A finite number, or `start`, was typed and confirmed: Enter, or the field was left. */
  readonly onEvent: (event: number) => void;
  readonly class?: string;
}

/** The number that a text says; `start` is the one before all events, null none. */
export function eventOf(text: string): number | null {
  const digits = text.replaceAll(/[\s,]/g, "").toLowerCase();
  if (digits === "start") return -1;
  const typed = Number(digits);
  return digits !== "" && Number.isFinite(typed) ? typed : null;
}

/** Spaces and commas between digits are read over; Escape takes the typing back. */
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
