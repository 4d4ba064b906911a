/** The map with what chooses and orders its segments. */

import type { HistoryFacts } from "../../../api/types.gen";
import { formatBytes, formatInteger } from "../../../base/bytes";
import { originOf } from "../../../model/words/origin";
import { SegmentMap } from "../../../widgets/segment_map/segment_map";
import { Choice, RowChoice, Segmented } from "../../shared/controls/choices";
import type { SegmentsState, Shown } from "./params";

const SORTS: Readonly<Record<SegmentsState["sort"], string>> = {
  size: "largest first",
  address: "address",
  free: "most free first",
  largest_free: "largest free block first",
  age: "oldest first",
};

export function MapPart(props: Shown) {
  const { view, params, setParams, open, state } = props;
  const { theme, byteUnit } = view;
  const { moment } = state.moment;
  const { stream, pool, sizeClass } = params;
  const numShown = state.segments.address.length;
  if (numShown === 0) {
    return (
      <p class="quiet">
        {stream !== null || pool !== null || sizeClass !== null
          ? "No segment passes the filter at this moment."
          : "Nothing is reserved at this moment."}
      </p>
    );
  }
  return (
    <>
      <SegmentMap
        label={`${props.label} at event ${moment}`}
        title={`${formatInteger(state.numSegments)} segments, ${formatBytes(state.reservedBytes, byteUnit)}`}
        answer={state}
        stacks={props.stacks}
        fill={params.fill}
        scale={params.scale}
        onScale={(scale) => setParams({ scale })}
        life={params.life}
        segment={params.segment}
        onChoose={(life, address) =>
          setParams({
            life,
            // A free block has no story of its own; its segment has.
            segment: life !== null || address === params.segment ? null : address,
          })
        }
        bar={<Looks {...props} />}
        origin={originOf(view.run)}
        about={() => ({ device: open.device.device, moment })}
        shell={view}
        theme={theme}
        byteUnit={byteUnit}
      />
      {state.numSegments > numShown && (
        <p class="quiet">
          {formatInteger(state.numSegments - numShown)} more segments are not drawn:
          filter, or sort another way, to see them. Sums count them.
        </p>
      )}
    </>
  );
}

/** Which segments there are, and in which order. */
export function Filters({
  params,
  setParams,
  facts,
  view,
}: Pick<Shown, "params" | "setParams" | "view"> & {
  readonly facts: HistoryFacts;
}) {
  const row = (value: string | null): number | null =>
    value === null ? null : Number(value);
  return (
    <>
      <Choice
        label="Sort"
        value={params.sort}
        onChange={(sort) => view.setParams({ sort: sort === "size" ? null : sort })}
      >
        {Object.entries(SORTS).map(([sort, words]) => (
          <option key={sort} value={sort}>
            {words}
          </option>
        ))}
      </Choice>
      <Choice
        label="Class"
        value={params.sizeClass ?? ""}
        onChange={(value) =>
          view.setParams({ size_class: value === "" ? null : value })
        }
      >
        <option value="">all</option>
        <option value="small">small</option>
        <option value="large">large</option>
      </Choice>
      <RowChoice
        label="Stream"
        names={facts.streams}
        chosen={params.stream}
        onChoose={(stream) => setParams({ stream: row(stream) })}
      />
      <RowChoice
        label="Pool"
        names={facts.pools}
        chosen={params.pool}
        onChoose={(pool) => setParams({ pool: row(pool) })}
      />
    </>
  );
}

function Looks({ params: { scale, fill }, setParams }: Shown) {
  return (
    <>
      <Segmented
        label="Scale of the lines"
        options={["equal", "fit"] as const}
        chosen={scale === "fit" ? "fit" : "equal"}
        words={(one) =>
          one === "equal"
            ? [
                "To scale",
                "A line is the same bytes for all; longer segments go on below",
              ]
            : ["Fill width", "Every segment fills its line, whatever its size"]
        }
        onChoose={(one) => setParams({ scale: one === "fit" ? "fit" : "auto" })}
      />
      <Segmented
        label="What colours say"
        options={["category", "state"] as const}
        chosen={fill}
        words={(one) =>
          one === "category"
            ? ["Category", "Live blocks in the colours of all pages"]
            : ["State", "Allocated, pending free and free alone"]
        }
        onChoose={(one) => setParams({ fill: one })}
      />
    </>
  );
}
