/** The list of histories: a button that opens it, with a search where they are many. */

import { useEffect, useRef, useState } from "preact/hooks";
import type { HistoriesResponse, HistoryChoice } from "../../../api/types.gen";
import { formatInteger, type ByteUnit } from "../../../base/bytes";
import { Icon } from "../../../widgets/icon/icon";
import { useOutside } from "../../../widgets/menu/use_outside";
import { historyMatches, historyNote, historyTitle, rankWords } from "./words";

/** More are searched rather than scrolled. */
const MOST_LISTED = 200;
const SEARCHED_FROM = 9;

export interface ChooserProps {
  readonly histories: HistoriesResponse;
  readonly chosen: string;
  readonly byteUnit: ByteUnit;
  readonly onChoose: (id: string) => void;
}

/** The newest first, as a person looks for them. */
function listed(
  { histories }: HistoriesResponse,
  typed: string,
): readonly HistoryChoice[] {
  return [...histories].reverse().filter((one) => historyMatches(one, typed));
}

export function HistoryChooser(props: ChooserProps) {
  const { histories, chosen, byteUnit } = props;
  const [open, setOpen] = useState(false);
  const root = useRef<HTMLDivElement>(null);
  const current = histories.histories.find(({ reference }) => reference.id === chosen);
  useOutside(root, open, () => setOpen(false));
  const close = (): void => {
    setOpen(false);
    root.current?.querySelector("button")?.focus();
  };
  const only = histories.histories.length === 1;
  return (
    <div class="history-chooser" ref={root}>
      <button
        type="button"
        class="button"
        aria-haspopup="listbox"
        aria-expanded={open}
        disabled={only}
        title={only ? "The only history of this run" : "Choose a history"}
        onClick={() => setOpen(!open)}
      >
        {current === undefined ? (
          <span>Choose a history</span>
        ) : (
          <>
            {rankWords(current) !== "" && <b>{rankWords(current)}</b>}
            <span class="history-title">{historyTitle(current)}</span>
            <span class="quiet history-note">{historyNote(current, byteUnit)}</span>
          </>
        )}
        {!only && <Icon name="down" sizePx={12} />}
      </button>
      {open && (
        <List
          {...props}
          close={close}
          onChoose={(id) => {
            close();
            props.onChoose(id);
          }}
        />
      )}
    </div>
  );
}

function List(props: ChooserProps & { readonly close: () => void }) {
  const { histories, chosen, byteUnit, close, onChoose } = props;
  const [typed, setTyped] = useState("");
  const found = listed(histories, typed);
  // By its id: histories that are found meanwhile move the others.
  const [at, setAt] = useState(chosen);
  const box = useRef<HTMLInputElement>(null);
  const list = useRef<HTMLUListElement>(null);
  const marked = Math.max(
    0,
    found.findIndex(({ reference }) => reference.id === at),
  );
  const mark = (place: number): void => {
    const one = found[Math.min(Math.max(place, 0), found.length - 1)];
    if (one !== undefined) setAt(one.reference.id);
  };
  const searched = histories.histories.length >= SEARCHED_FROM;
  useEffect(() => {
    if (searched) box.current?.focus();
    else list.current?.focus();
  }, [searched]);
  useEffect(
    () =>
      list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({
        block: "nearest",
      }),
    [marked],
  );
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key === "ArrowDown") mark(marked + 1);
    else if (event.key === "ArrowUp") mark(marked - 1);
    else if (event.key === "Escape") close();
    else if (event.key === "Enter") {
      const one = found[marked];
      if (one !== undefined) onChoose(one.reference.id);
    } else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const left = histories.numHistories - histories.histories.length;
  return (
    <div class="history-list" onKeyDown={onKeyDown}>
      {searched && (
        <input
          ref={box}
          type="text"
          aria-label="Find a history by rank, step, label, file or kind"
          placeholder="Rank, step, label, file, “out of memory”"
          autocomplete="off"
          spellcheck={false}
          value={typed}
          onInput={(event) => {
            setTyped(event.currentTarget.value);
            setAt("");
          }}
        />
      )}
      <ul ref={list} role="listbox" aria-label="Histories" tabIndex={-1}>
        {found.slice(0, MOST_LISTED).map((one, i) => (
          <li
            key={one.reference.id}
            role="option"
            aria-selected={i === marked}
            class={one.reference.id === chosen ? "is-chosen" : ""}
            title={one.reference.path}
            onClick={() => onChoose(one.reference.id)}
          >
            <span class="history-rank">{rankWords(one)}</span>
            <span class="history-title">
              {one.origin === "oom" && <Icon name="warning" sizePx={14} />}
              {historyTitle(one)}
              {one.state === "failed" && <span class="status-bad"> {one.problem}</span>}
            </span>
            <span class="quiet history-note">{historyNote(one, byteUnit)}</span>
          </li>
        ))}
        {found.length === 0 && <li class="quiet">No history matches.</li>}
      </ul>
      {(left > 0 || found.length > MOST_LISTED) && (
        <p class="quiet">
          {found.length > MOST_LISTED &&
            `The newest ${MOST_LISTED} of ${formatInteger(found.length)} that match. `}
          {left > 0 &&
            `${formatInteger(left)} older ones are not listed; choose a rank.`}
        </p>
      )}
    </div>
  );
}
