import { useEffect, useRef, useState } from "preact/hooks";
import type { HistoriesResponse } from "../../../api/types.gen";
import { formatInteger, type ByteUnit } from "../../../base/bytes";
import { Icon } from "../../../widgets/icon/icon";
import "./history.css";
import { useOpened } from "../../../widgets/menu/menu";
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

export function HistoryChooser(props: ChooserProps) {
  const { histories, chosen, byteUnit } = props;
  const { open, setOpen, root, close, onKeyDown } = useOpened();
  const current = histories.histories.find(({ reference }) => reference.id === chosen);
  const only = histories.histories.length === 1;
  return (
    <span class="history-chooser" ref={root} onKeyDown={onKeyDown}>
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
          "Choose a history"
        ) : (
          <>
            <b class="nowrap">{rankWords(current)}</b>
            <span class="cut">{historyTitle(current)}</span>
            <span class="quiet small cut">{historyNote(current, byteUnit)}</span>
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
    </span>
  );
}

function List(props: ChooserProps & { readonly close: () => void }) {
  const { chosen, byteUnit, close, onChoose } = props;
  const { histories, numHistories } = props.histories;
  const [typed, setTyped] = useState("");
  const found = [...histories].reverse().filter((one) => historyMatches(one, typed));
  // By id: new histories shift the others.
  const [at, setAt] = useState(chosen);
  const root = useRef<HTMLDivElement>(null);
  const place = found.findIndex(({ reference }) => reference.id === at);
  const marked = Math.max(0, place);
  const searched = histories.length >= SEARCHED_FROM;
  useEffect(
    () => root.current?.querySelector<HTMLElement>("input, ul")?.focus(),
    [searched],
  );
  useEffect(() => {
    const option = root.current?.querySelector("[aria-selected=true]");
    option?.scrollIntoView({ block: "nearest" });
  }, [marked]);
  const onKeyDown = (event: KeyboardEvent): void => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key] ?? 0;
    const next = found[Math.min(Math.max(marked + by, 0), found.length - 1)];
    if (by === 0 && event.key !== "Escape" && event.key !== "Enter") return;
    if (event.key === "Escape") close();
    else if (next !== undefined) {
      if (by === 0) onChoose(next.reference.id);
      else setAt(next.reference.id);
    }
    event.preventDefault();
    event.stopPropagation();
  };
  const left = numHistories - histories.length;
  const most = found.length > MOST_LISTED;
  return (
    <div class="menu-list history-list" ref={root} onKeyDown={onKeyDown}>
      {searched && (
        <input
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
      <ul role="listbox" aria-label="Histories" tabIndex={-1}>
        {found.slice(0, MOST_LISTED).map((one, i) => (
          <li
            key={one.reference.id}
            role="option"
            aria-selected={i === marked}
            class={one.reference.id === chosen ? "is-chosen" : ""}
            title={one.reference.path}
            onClick={() => onChoose(one.reference.id)}
          >
            <span class="quiet small nowrap">{rankWords(one)}</span>
            <span class="cut">
              {one.origin === "oom" && (
                <span class="tone-bad">
                  <Icon name="warning" sizePx={14} />{" "}
                </span>
              )}
              {historyTitle(one)}
              {one.state === "failed" && <span class="status-bad"> {one.problem}</span>}
            </span>
            <span class="quiet small nowrap">{historyNote(one, byteUnit)}</span>
          </li>
        ))}
        {found.length === 0 && <li class="quiet">No history matches.</li>}
      </ul>
      {(left > 0 || most) && (
        <p class="quiet small nowrap">
          {most &&
            `The newest ${MOST_LISTED} of ${formatInteger(found.length)} that match. `}
          {left > 0 &&
            `${formatInteger(left)} older ones are not listed; choose a rank.`}
        </p>
      )}
    </div>
  );
}
