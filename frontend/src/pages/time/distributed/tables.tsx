/** The tables of Distributed: ranks, and their collectives; sorted and searched. */

import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { DistributedResponse } from "../../../api/types.gen";
import { formatInteger } from "../../../base/bytes";
import { ROW_PX, RowTable } from "../../../widgets/row_table/row_table";
import { useSort } from "../../../widgets/row_table/use_sort";
import { SearchBox } from "../../shared/controls/search_box";
import type { ViewProps } from "../../shared/view_props";
import {
  collectiveColumns,
  rankColumns,
  USUAL_COLLECTIVES,
  USUAL_RANKS,
} from "./columns";
import { groupColumns, USUAL_GROUPS } from "./group_columns";
import { collectivesHolding, ranksNamed } from "./search";
import { PART_WORDS, RANK_PARTS, rankPartColour } from "./parts";

const MOST_PX = 360;
const HEAD_PX = 32;
/** Fewer rows are seen at once: nothing needs to be searched. */
const SEARCHED_FROM = 12;

interface TableProps {
  readonly data: DistributedResponse;
  readonly view: ViewProps;
}

function tablePx(numRows: number): number {
  return Math.min(MOST_PX, HEAD_PX + Math.max(1, numRows) * ROW_PX);
}

/** A table's search, and what is said beside it; nothing where a few rows are all. */
function Search(props: {
  readonly label: string;
  readonly placeholder: string;
  readonly view: ViewProps;
  /** The URL's word for the text. */
  readonly word: "rfind" | "cfind";
  readonly numRows: number;
  readonly children?: ComponentChildren;
}) {
  const text = props.view.params.get(props.word) ?? "";
  if (text === "" && props.numRows <= SEARCHED_FROM) return null;
  return (
    <>
      <SearchBox
        label={props.label}
        placeholder={props.placeholder}
        text={text}
        onText={(value) => props.view.setParams({ [props.word]: value })}
      />
      {props.children}
    </>
  );
}

export function Ranks({
  data,
  view,
  marked,
  onMark,
}: TableProps & {
  /** The rank that is marked; null: none is. */
  readonly marked: number | null;
  readonly onMark: (rank: number) => void;
}) {
  const { params, setParams } = view;
  const text = params.get("rfind") ?? "";
  const columns = useMemo(() => rankColumns(data, view.theme), [data, view.theme]);
  const named = useMemo(() => ranksNamed(text), [text]);
  const { rows: sorted, ...sorting } = useSort(
    columns,
    data.rank.length,
    USUAL_RANKS,
    params.get("rsort"),
    (rsort) => setParams({ rsort }),
  );
  const rows = useMemo(() => {
    const { ranks } = named;
    return ranks === null
      ? sorted
      : sorted.filter((row) => ranks.has(data.rank[row] ?? -1));
  }, [data, sorted, named]);
  const selected = marked === null ? -1 : data.rank.indexOf(marked);
  return (
    <section aria-label="Ranks as a table">
      <div class="distributed-bar">
        <ul class="distributed-legend" aria-hidden="true">
          {RANK_PARTS.map((part) => (
            <li key={part} title={PART_WORDS[part][1]}>
              <i style={{ background: rankPartColour(view.theme, part) }} />
              {PART_WORDS[part][0]}
            </li>
          ))}
        </ul>
        <Search
          label="Ranks in the table, such as 0-7,64"
          placeholder="0-7,64"
          view={view}
          word="rfind"
          numRows={data.rank.length}
        >
          <span class="quiet" role="status">
            {named.problem ??
              (named.ranks === null
                ? ""
                : `${formatInteger(rows.length)} of ${formatInteger(data.rank.length)}`)}
          </span>
        </Search>
        {selected >= 0 && marked !== null && (
          <button
            type="button"
            class="text-button end"
            onClick={() => view.chooseRank(marked)}
          >
            Open rank {marked} everywhere
          </button>
        )}
      </div>
      <RowTable
        label="Ranks in profiled steps"
        columns={columns}
        rows={rows}
        selected={selected < 0 ? null : selected}
        onSelect={(row) => {
          const rank = data.rank[row];
          if (rank !== undefined && rank >= 0) onMark(rank);
        }}
        {...sorting}
        empty={
          data.rank.length === 0
            ? "No trace of this cycle is open yet."
            : "None of these ranks has a trace of this cycle."
        }
        heightPx={tablePx(rows.length)}
      />
    </section>
  );
}

/** How long ranks wait for one another in each process group, and for whom. */
export function Groups({ data, view }: TableProps) {
  const [word, setWord] = useState<string | null>(null);
  const { groups: own, numGroups } = data;
  const sent = own.kind.length;
  const columns = useMemo(() => groupColumns(data, view.theme), [data, view.theme]);
  const sorted = useSort(columns, sent, USUAL_GROUPS, word ?? undefined, setWord);
  return (
    <section aria-label="Process groups">
      <div class="distributed-bar">
        <h3>By process group</h3>
        {sent < numGroups && (
          <span class="quiet">
            the {formatInteger(sent)} of {formatInteger(numGroups)} that waited longest
          </span>
        )}
      </div>
      <RowTable
        label="Collectives by process group"
        columns={columns}
        {...sorted}
        empty="No two ranks’ traces show the same collective."
        heightPx={tablePx(sent)}
      />
    </section>
  );
}

export function Collectives({ data, view }: TableProps) {
  const { params, setParams } = view;
  const { collectives: own, numCollectives } = data;
  const text = params.get("cfind") ?? "";
  const sent = own.rank.length;
  const columns = useMemo(
    () => collectiveColumns(data, view.byteUnit),
    [data, view.byteUnit],
  );
  const { rows: sorted, ...sorting } = useSort(
    columns,
    sent,
    USUAL_COLLECTIVES,
    params.get("csort"),
    (csort) => setParams({ csort }),
  );
  const rows = useMemo(() => {
    const kept = collectivesHolding(own, text);
    return kept === null ? sorted : sorted.filter((row) => kept.has(row));
  }, [own, sorted, text]);
  return (
    <section aria-label="Collectives">
      <div class="distributed-bar">
        <h3>Collectives</h3>
        <Search
          label="Collectives: kind, group, or a rank’s number"
          placeholder="all_gather 637"
          view={view}
          word="cfind"
          numRows={sent}
        />
        <span class="quiet" role="status">
          {formatInteger(rows.length)} of {formatInteger(numCollectives)} rows, one per
          rank, kind and group
          {sent < numCollectives &&
            `; the ${formatInteger(sent)} that took longest are searched`}
        </span>
      </div>
      <RowTable
        label="Collectives"
        columns={columns}
        rows={rows}
        {...sorting}
        empty="No collective holds this text."
        heightPx={tablePx(rows.length)}
      />
    </section>
  );
}
