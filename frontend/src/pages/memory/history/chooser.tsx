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
  const found = [...histories].reverse().filter((one) => historyMatches(one, typed));
  const left = numHistories - histories.length;
  const most = found.length > MOST_LISTED;
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
            const [first] = found;
            if (key === "Enter" && first !== undefined) onChoose(first.reference.id);
          }}
        />
      )}
      <div role="menu" aria-label="Histories">
        {found.slice(0, MOST_LISTED).map((one) => (
          <button
            key={one.reference.id}
            type="button"
            role="menuitem"
            aria-current={one.reference.id === chosen}
            title={one.reference.path}
            onClick={() => onChoose(one.reference.id)}
          >
            <span class="quiet small nowrap">{rankWords(one.reference)}</span>
            <span class="cut">
              {one.origin === "oom" && (
                <span class="tone-bad">
                  <Icon name="warning" sizePx={14} />{" "}
                </span>
              )}
              {one.reference.title}
              {one.state === "failed" && <span class="status-bad"> {one.problem}</span>}
            </span>
            <span class="quiet small nowrap">
              {historyNote(one.reference, byteUnit)}
            </span>
          </button>
        ))}
      </div>
      {found.length === 0 && <p class="quiet">No history matches.</p>}
      {(left > 0 || most) && (
        <p class="quiet small nowrap">
          {most &&
            `The newest ${MOST_LISTED} of ${formatInteger(found.length)} that match. `}
          {left > 0 && `Not listed: ${formatInteger(left)} older; choose a rank.`}
        </p>
      )}
    </div>
  );
}
