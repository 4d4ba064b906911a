/** `/` focuses it where it has commands. */

import { useRef } from "preact/hooks";
import { commandsOf, useCommands, type Commands } from "../../../base/commands";

export interface SearchBoxProps {
  readonly label: string;
  readonly text: string;
  readonly onText: (text: string) => void;
  readonly placeholder?: string;
  /** Where the label does not explain the search. */
  readonly hint?: string;
  readonly commands?: Commands;
}

export function SearchBox(props: SearchBoxProps) {
  const box = useRef<HTMLInputElement>(null);
  useCommands(
    props.commands,
    () =>
      commandsOf("search", "View", [
        ["focus", props.label, () => box.current?.focus(), "/"],
      ]),
    [props.label],
  );
  return (
    <label>
      <span class="quiet">Search</span>{" "}
      <input
        ref={box}
        type="search"
        aria-label={props.label}
        title={props.hint ?? props.label}
        placeholder={props.placeholder}
        value={props.text}
        spellcheck={false}
        onInput={(event) => props.onText(event.currentTarget.value)}
      />
    </label>
  );
}
