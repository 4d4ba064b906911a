/** Below the timeline: the chosen slice or instant in full, or a range summed up. */

import type {
  TraceRangeResponse,
  TraceResponse,
  TracePartner,
  TraceSliceResponse,
  TraceInstantResponse,
  TraceArg,
} from "../../../api/types.gen";
import { formatInteger, formatShare } from "../../../base/bytes";
import { Failure } from "../../../widgets/state/state";
import type { ViewProps } from "../../shared/view_props";
import { type Layout, around, countTracks } from "./plot/layout";
import {
  rangeWords,
  since,
  sliceWords,
  type TraceParams,
  type TraceWindow,
  type SliceRef,
} from "./state/params";
import { RangeDrawer } from "./range";
import type { Chosen, ChosenInstant } from "./state/chosen";
import type { Moves } from "./state/moves";
import { formatInstant } from "../../../base/durations";
import type { Theme } from "../../../base/tokens";
import { Drawer } from "../../shared/panels/drawer";
import { familyColour } from "../profiled/family_colours";
import { FAMILY_WORDS } from "./paint/quads";
import { formatNs, formatNsExact } from "./words";
import { KIND_WORDS } from "./tiles/tile";
import { markColour } from "./paint/lines";
import type { ComponentChildren } from "preact";

export function Details(props: {
  readonly view: ViewProps;
  readonly params: TraceParams;
  readonly answer: TraceResponse;
  readonly base: bigint;
  readonly layout: Layout;
  readonly chosen: Chosen;
  readonly instant: ChosenInstant;
  readonly sums: TraceRangeResponse | null;
  readonly window: TraceWindow;
  readonly moves: Moves;
}) {
  const { params, base, chosen, moves } = props;
  const { theme, setParams } = props.view;
  const { setWindow } = props.window;
  const { slice, selected } = chosen;
  const { instant } = props.instant;
  const { range, rangeTracks } = params;
  return (
    <>
      {params.slice !== null && chosen.error !== null && (
        <Failure failure={chosen.error} />
      )}
      {slice !== null && selected !== null && (
        <SliceDrawer
          slice={slice}
          answer={props.answer}
          layout={props.layout}
          theme={theme}
          onSlice={(next) => moves.choose(next, true)}
          onFit={() => {
            setWindow(around(selected.startNs, selected.endNs, 0.1));
            moves.scrollTo.value = selected;
          }}
          onFind={(name) => setParams({ find: name.slice(0, 120) })}
          close={() => setParams(sliceWords(null))}
        />
      )}
      {params.instant !== null && props.instant.error !== null && (
        <Failure failure={props.instant.error} />
      )}
      {instant !== null && (
        <InstantDrawer
          instant={instant}
          answer={props.answer}
          theme={theme}
          onSlice={(next) => moves.choose(next, true)}
          onNext={moves.nextInstant}
          close={() => setParams(sliceWords(null))}
        />
      )}
      {slice === null && range !== null && (
        <RangeDrawer
          sums={props.sums}
          spanNs={Number(range.high - range.low)}
          ofTracks={
            rangeTracks === ""
              ? ""
              : `, on ${formatInteger(countTracks(rangeTracks))} chosen tracks`
          }
          theme={theme}
          onSlice={(next) => moves.choose(next, true)}
          onZoom={() =>
            setWindow({ low: since(base, range.low), high: since(base, range.high) })
          }
          close={() => setParams(rangeWords(null, ""))}
        />
      )}
    </>
  );
}

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

export function InstantDrawer(props: {
  readonly instant: TraceInstantResponse;
  readonly answer: TraceResponse;
  readonly theme: Theme;
  readonly onSlice: (slice: SliceRef) => void;
  readonly onNext: (sign: 1 | -1) => void;
  readonly close: () => void;
}) {
  const { instant, answer, theme } = props;
  const { category } = instant;
  const sinceBase = Number(BigInt(instant.timeNs) - BigInt(answer.baseNs));
  const track = answer.tracks.find(
    (one) => `${answer.sources[one.source]?.id ?? ""}:${one.index}` === instant.track,
  );
  const rank = track?.rank ?? null;
  return (
    <Drawer
      label="The chosen instant"
      title={
        <>
          <span
            class="row-table-swatch"
            style={{ background: markColour(theme, instant.kind) }}
          />
          <span class="trace-drawer-name">{instant.name}</span>
        </>
      }
      actions={
        <>
          <button
            type="button"
            class="text-button"
            title="Comma"
            onClick={() => props.onNext(-1)}
          >
            Previous instant
          </button>
          <button
            type="button"
            class="text-button"
            title="Full stop"
            onClick={() => props.onNext(1)}
          >
            Next instant
          </button>
        </>
      }
      close={props.close}
    >
      <div class="trace-drawer">
        <dl class="trace-facts">
          <Fact name="At">
            {formatNs(sinceBase)}{" "}
            <span class="quiet">
              {formatNsExact(sinceBase)} since the beginning,{" "}
              {formatInstant(Number(BigInt(instant.timeNs) / 1_000_000n))}
            </span>
          </Fact>
          <Fact name="On">
            {track === undefined ? instant.track : `${track.name} · ${track.process}`}
            {rank !== null && <span class="quiet"> rank {rank}</span>}
          </Fact>
          <Fact name="Category">
            {instant.kind === "other" && category !== ""
              ? category
              : KIND_WORDS[instant.kind]}
          </Fact>
          <LiesIn stack={instant.stack} onSlice={props.onSlice} />
        </dl>
        <div>
          <Arguments args={instant.args} problem={instant.argsProblem} />
        </div>
      </div>
    </Drawer>
  );
}

export function Fact({
  name,
  children,
}: {
  readonly name: string;
  readonly children: ComponentChildren;
}) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** A slice's name that leads to it. */
export function Go({
  partner,
  onSlice,
}: {
  readonly partner: TracePartner;
  readonly onSlice: (slice: SliceRef) => void;
}) {
  return (
    <button
      type="button"
      class="text-button trace-go"
      title={`${partner.name}\n${formatNs(partner.durationNs)}`}
      onClick={() => onSlice({ source: partner.source, row: partner.row })}
    >
      {partner.name}
    </button>
  );
}

/** The slices around, innermost first. */
export function LiesIn(props: {
  readonly stack: readonly TracePartner[];
  readonly onSlice: (slice: SliceRef) => void;
}) {
  if (props.stack.length === 0) return null;
  return (
    <Fact name="Lies in">
      <ol class="trace-stack">
        {props.stack.map((above) => (
          <li key={above.row}>
            <Go partner={above} onSlice={props.onSlice} />
          </li>
        ))}
      </ol>
    </Fact>
  );
}

export function Arguments(props: {
  readonly args: readonly TraceArg[];
  readonly problem: string;
}) {
  const { args, problem } = props;
  return (
    <>
      <h3>Arguments</h3>
      {problem !== "" && <p class="quiet">They cannot be read: {problem}</p>}
      {args.length === 0 && problem === "" && <p class="quiet">None were recorded.</p>}
      <dl class="trace-args">
        {args.map(({ name, value }) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </>
  );
}
