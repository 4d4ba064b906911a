import { useState } from "preact/hooks";
import type { HistoriesResponse } from "../../../api/types.gen";
import { formatInteger, type ByteUnit } from "../../../base/bytes";
import { Icon } from "../../../widgets/icon/icon";
import "./history.css";
import { Opener } from "../../../widgets/menu/menu";
import { historyMatches, historyNote, rankWords } from "./text";

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
  const current = histories.histories.find(({ reference }) => reference.id === chosen);
  const only = histories.histories.length === 1;
  const children = (
    <>
      {current === undefined ? (
        "Choose a history"
      ) : (
        <>
          <b class="nowrap">{rankWords(current.reference)}</b>
          <span class="cut">{current.reference.title}</span>
          <span class="quiet small cut">
            {historyNote(current.reference, byteUnit)}
          </span>
        </>
      )}
      {!only && <Icon name="down" sizePx={12} />}
    </>
  );
  const title = only ? "The only history of this run" : "Choose a history";
  return (
    <Opener
      popup="menu"
      class="history-chooser"
      button={{ class: "button", disabled: only, title, children }}
    >
      {(close) => (
        <List
          {...props}
          onChoose={(id) => {
            close();
            props.onChoose(id);
          }}
        />
      )}
    </Opener>
  );
}

function List(props: ChooserProps) {
  const { chosen, byteUnit, onChoose } = props;
  const { histories, numHistories } = props.histories;
  const [typed, setTyped] = useState("");
  const matches = [...histories]
    .reverse()
    .filter((choice) => historyMatches(choice, typed));
  const left = numHistories - histories.length;
  const most = matches.length > MOST_LISTED;
  return (
    <div class="menu-list history-list">
      {histories.length >= SEARCHED_FROM && (
        <input
          type="text"
          aria-label="Find a history by rank, step, label, file or kind"
          placeholder="Rank, step, label, file, “out of memory”"
          autocomplete="off"
          spellcheck={false}
          value={typed}
          onInput={(event) => setTyped(event.currentTarget.value)}
          onKeyDown={({ key }) => {
            const [first] = matches;
            if (key === "Enter" && first !== undefined) onChoose(first.reference.id);
          }}
        />
      )}
      <div role="menu" aria-label="Histories">
        {matches.slice(0, MOST_LISTED).map((choice) => (
          <button
            key={choice.reference.id}
            type="button"
            role="menuitem"
            aria-current={choice.reference.id === chosen}
            title={choice.reference.path}
            onClick={() => onChoose(choice.reference.id)}
          >
            <span class="quiet small nowrap">{rankWords(choice.reference)}</span>
            <span class="cut">
              {choice.origin === "oom" && (
                <span class="tone-bad">
                  <Icon name="warning" sizePx={14} />{" "}
                </span>
              )}
              {choice.reference.title}
              {choice.state === "failed" && (
                <span class="status-bad"> {choice.problem}</span>
              )}
            </span>
            <span class="quiet small nowrap">
              {historyNote(choice.reference, byteUnit)}
            </span>
          </button>
        ))}
      </div>
      {matches.length === 0 && <p class="quiet">No history matches.</p>}
      {(left > 0 || most) && (
        <p class="quiet small nowrap">
          {most &&
            `The newest ${MOST_LISTED} of ${formatInteger(matches.length)} that match. `}
          {left > 0 && `Not listed: ${formatInteger(left)} older; choose a rank.`}
        </p>
      )}
    </div>
  );
}
