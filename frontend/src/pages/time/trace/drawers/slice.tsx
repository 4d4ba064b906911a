/** The chosen slice, in full: times, place, arguments, and what it stands in relation to. */

import type {
  TracePartner,
  TraceResponse,
  TraceSliceResponse,
} from "../../../../api/types.gen";
import { formatInteger, formatShare } from "../../../../base/bytes";
import { formatInstant } from "../../../../base/durations";
import type { Theme } from "../../../../base/tokens";
import { Drawer } from "../../../shared/panels/drawer";
import { Arguments, Fact, Go, LiesIn } from "./arguments";
import { familyColour } from "../../profiled/family_colours";
import { FAMILY_WORDS } from "../paint/colours";
import type { Layout } from "../plot/layout";
import type { SliceRef } from "../state/params";
import { formatNs, formatNsExact } from "../words";

const RELATION: Readonly<Record<TracePartner["relation"], readonly [string, string]>> =
  {
    parent: ["in", "in"],
    launch: ["launches", "launched by"],
    fwdbwd: ["backward of it", "forward of it"],
    flow: ["leads to", "comes from"],
  };

export function SliceDrawer(props: {
  readonly slice: TraceSliceResponse;
  readonly answer: TraceResponse;
  readonly layout: Layout;
  readonly theme: Theme;
  readonly onSlice: (slice: SliceRef) => void;
  readonly onFit: () => void;
  readonly onFind: (name: string) => void;
  readonly close: () => void;
}) {
  const { slice, answer, layout, theme } = props;
  const sinceBase = Number(BigInt(slice.startNs) - BigInt(answer.baseNs));
  const row = layout.byTrack.get(slice.track);
  const source = answer.sources.find(({ id }) => id === slice.source);
  const track = answer.tracks.find(
    (one) => `${answer.sources[one.source]?.id ?? ""}:${one.index}` === slice.track,
  );
  return (
    <Drawer
      label="The chosen slice"
      title={
        <>
          <span
            class="row-table-swatch"
            style={{ background: familyColour(theme, slice.family) }}
          />
          <span class="trace-drawer-name">{slice.name}</span>
        </>
      }
      actions={
        <>
          <button type="button" class="text-button" onClick={props.onFit}>
            Zoom to it
          </button>
          <button
            type="button"
            class="text-button"
            onClick={() => props.onFind(slice.name)}
          >
            Find its name
          </button>
        </>
      }
      close={props.close}
    >
      <div class="trace-drawer">
        <dl class="trace-facts">
          <Fact name="Starts">
            {formatNs(sinceBase)}{" "}
            <span class="quiet">
              {formatInstant(Number(BigInt(slice.startNs) / 1_000_000n))}
            </span>
          </Fact>
          <Fact name="Takes">
            {formatNs(slice.durationNs)}{" "}
            <span class="quiet">{formatNsExact(slice.durationNs)}</span>
          </Fact>
          <Fact name="Itself">
            {formatNs(slice.selfNs)}{" "}
            <span class="quiet">
              {formatShare(slice.selfNs, slice.durationNs)}
              {slice.numChildren > 0 &&
                `, the rest in ${formatInteger(slice.numChildren)} inside`}
            </span>
          </Fact>
          <Fact name="On">
            {track === undefined
              ? (row?.label ?? slice.track)
              : `${row?.label ?? track.name} · ${track.process}`}
            {source?.rank !== null && source?.rank !== undefined && (
              <span class="quiet"> rank {source.rank}</span>
            )}
          </Fact>
          <Fact name="Category">
            {slice.category === "" ? FAMILY_WORDS[slice.family] : slice.category}
          </Fact>
          <LiesIn stack={slice.stack} onSlice={props.onSlice} />
        </dl>
        <div>
          {slice.partners.length > 0 && (
            <>
              <h3>Linked with</h3>
              <ul class="trace-partners">
                {slice.partners.map((one) => (
                  <li key={`${one.row} ${one.relation}`}>
                    <span class="quiet">
                      {RELATION[one.relation][one.outgoing ? 0 : 1]}
                    </span>{" "}
                    <Go partner={one} onSlice={props.onSlice} />{" "}
                    <span class="quiet">{distance(one, slice.durationNs)}</span>
                  </li>
                ))}
              </ul>
            </>
          )}
          <Arguments args={slice.args} problem={slice.argsProblem} />
        </div>
      </div>
    </Drawer>
  );
}

function distance({ startNs }: TracePartner, durationNs: number): string {
  if (startNs < 0) return `${formatNs(-startNs)} before`;
  return startNs >= durationNs
    ? `${formatNs(startNs)} after it began`
    : `${formatNs(startNs)} into it`;
}
