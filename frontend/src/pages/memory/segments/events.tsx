import { useMemo, useRef } from "preact/hooks";
import type { Query } from "../../../api/client";
import { ACTION_WORDS, type AllocatorEventsResponse } from "../../../api/types.gen";
import { useLive } from "../../../api/live/use_live";
import { counted } from "../../../base/bytes";
import { Waiting } from "../../../widgets/state/state";
import { Switch } from "../../shared/controls/choices";
import { PagedTable } from "../../shared/table/answer_table";
import { numbersOf } from "../../shared/table/columns";
import { useAnswers } from "./answers";
import { SEGMENTS, type SegmentsState, type OpenSegments } from "./params";

const HEIGHT_PX = 560;
const CHUNK_ROWS = 400;

const ACTIONS: Readonly<Record<SegmentsState["events"], string | null>> = {
  all: null,
  segments: "segment_alloc,segment_free,segment_map,segment_unmap",
  marks: "oom,snapshot,annotate",
};

export function EventList(props: OpenSegments) {
  const { view, open, params, setParams, moment } = props;
  const { client } = view;
  const choice = params.events;
  const actions = ACTIONS[choice];
  const subject: Query = { ...open.place, actions };
  const head = useLive(client, "allocator_events", {
    ...subject,
    moment: actions === null ? null : moment,
    count: 1,
  });
  const header = useMemo(
    () => head.data && { ...head.data.table, numRows: head.data.table.numAll },
    [head.data],
  );
  const { error, get, want } = useAnswers<AllocatorEventsResponse>(
    subject,
    (chunk, signal) => {
      const query = { ...subject, e0: chunk * CHUNK_ROWS, count: CHUNK_ROWS };
      return client.get("allocator_events", query, signal);
    },
  );
  // Rows drawn before they arrived.
  const missing = useRef(new Set<number>());
  const chunkOf = (row: number): AllocatorEventsResponse | null => {
    const chunk = Math.floor(row / CHUNK_ROWS);
    const loaded = get(chunk);
    if (loaded !== undefined) return loaded;
    if (missing.current.size === 0) {
      queueMicrotask(() => {
        want([...missing.current]);
        missing.current.clear();
      });
    }
    missing.current.add(chunk);
    return null;
  };
  const choose = ({ table }: AllocatorEventsResponse, row: number): void => {
    const life = numbersOf(table, "life")[row] ?? -1;
    props.go(numbersOf(table, "event")[row] ?? 0);
    setParams({ life: life < 0 ? null : life });
  };
  return (
    <>
      <Waiting
        error={head.error ?? error}
        hasContent={header !== null}
        blocksPx={[HEIGHT_PX]}
      />
      {header !== null && (
        <PagedTable
          view={view}
          table={header}
          partOf={(row) => {
            const chunk = chunkOf(row);
            return chunk && { table: chunk.table, row: row % CHUNK_ROWS };
          }}
          hasArrived={(row) => get(Math.floor(row / CHUNK_ROWS)) !== undefined}
          stacks={props.stacks}
          culprits={OOMS}
          head={
            <>
              <h2>{header.title}</h2>
              <Switch view={view} of={SEGMENTS.events} label="Events shown" />
              <span class="quiet">{counted(header.numRows, "event")}</span>
            </>
          }
          selected={actions === null ? moment : (head.data?.rowOfMoment ?? -1)}
          onSelect={(row) => {
            const chunk = chunkOf(row);
            if (chunk !== null) choose(chunk, row % CHUNK_ROWS);
            // A row never in sight, such as the last one by its key.
            else
              void client
                .get("allocator_events", { ...subject, e0: row, count: 1 })
                .then(
                  (answer) => choose(answer, 0),
                  () => undefined,
                );
          }}
          heightPx={HEIGHT_PX}
          steady
        />
      )}
    </>
  );
}

const OOMS: ReadonlySet<string> = new Set([ACTION_WORDS.oom]);
