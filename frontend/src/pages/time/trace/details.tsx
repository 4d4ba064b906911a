/** Docked beside the timeline: the chosen slice or instant in full, or a range summed up. */

import type { ComponentChildren } from "preact";
import type {
  TraceArg,
  TracePartner,
  TraceRangeResponse,
  TraceResponse,
} from "../../../api/types.gen";
import type { ApiError } from "../../../api/client";
import { formatInteger, formatShare } from "../../../base/bytes";
import { formatInstant } from "../../../base/durations";
import { Failure } from "../../../widgets/state/state";
import { CloseDetails } from "../../shared/panels/close_details";
import type { ViewProps } from "../../shared/view_props";
import { familyColour } from "../profiled/family_colours";
import { markColour } from "./paint/lines";
import { FAMILY_WORDS } from "./paint/quads";
import { around, countTracks } from "./plot/layout";
import { RangeTable } from "./range";
import type { Chosen, ChosenInstant } from "./state/chosen";
import type { Moves } from "./state/moves";
import {
  rangeWords,
  since,
  sliceWords,
  type SliceRef,
  type TraceParams,
  type TraceWindow,
} from "./state/params";
import { KIND_WORDS } from "./tiles/tile";
import { formatNs, formatNsExact } from "./words";

interface DetailsProps {
  readonly view: ViewProps;
  readonly params: TraceParams;
  readonly answer: TraceResponse;
  readonly base: bigint;
  readonly chosen: Chosen;
  readonly instant: ChosenInstant;
  readonly sums: TraceRangeResponse | null;
  readonly window: TraceWindow;
  readonly moves: Moves;
  readonly heightPx: number;
}

/** Whether anything is docked. */
export function hasDetails({ slice, instant, range }: TraceParams): boolean {
  return slice !== null || instant !== null || range !== null;
}

export function Details(props: DetailsProps) {
  const { params } = props;
  if (params.slice !== null) return <SliceDetails {...props} />;
  if (params.instant !== null) return <InstantDetails {...props} />;
  return params.range === null ? null : <RangeDetails {...props} />;
}

function Dock(props: {
  readonly label: string;
  readonly colour?: string;
  readonly title: string;
  readonly actions: ComponentChildren;
  readonly close: () => void;
  readonly heightPx: number;
  readonly error?: ApiError | null;
  readonly children: ComponentChildren;
}) {
  const { label, colour, title, error = null } = props;
  return (
    <section
      class="trace-dock"
      aria-label={label}
      style={{ maxHeight: `${props.heightPx}px` }}
    >
      <header>
        <h2 class="trace-dock-name" title={title}>
          {colour !== undefined && (
            <span class="row-table-swatch" style={{ background: colour }} />
          )}
          {title}
        </h2>
        <CloseDetails close={props.close} />
      </header>
      <div class="trace-dock-acts">{props.actions}</div>
      {error !== null && <Failure failure={error} />}
      {props.children}
    </section>
  );
}

function Act(props: { readonly text: string; readonly run: () => void }) {
  return (
    <button type="button" class="text-button" onClick={props.run}>
      {props.text}
    </button>
  );
}

const RELATION: Readonly<Record<TracePartner["relation"], readonly [string, string]>> =
  {
    parent: ["in", "in"],
    launch: ["launches", "launched by"],
    fwdbwd: ["backward of it", "forward of it"],
    flow: ["leads to", "comes from"],
  };

function SliceDetails(props: DetailsProps) {
  const { view, answer, base, chosen, moves, heightPx } = props;
  const { slice, selected, error } = chosen;
  const onSlice = (next: SliceRef): void => moves.choose(next, true);
  const startNs = slice === null ? 0 : since(base, BigInt(slice.startNs));
  return (
    <Dock
      label="The chosen slice"
      title={slice?.name ?? ""}
      {...(slice !== null && { colour: familyColour(view.theme, slice.family) })}
      heightPx={heightPx}
      error={error}
      close={() => view.setParams(sliceWords(null))}
      actions={
        slice !== null && (
          <>
            <Act
              text="Zoom to it"
              run={() => {
                if (selected === null) return;
                props.window.setWindow(around(selected.startNs, selected.endNs, 0.1));
                moves.scrollTo.value = selected;
              }}
            />
            <Act
              text="Find its name"
              run={() => view.setParams({ find: slice.name.slice(0, 120) })}
            />
          </>
        )
      }
    >
      {slice !== null && (
        <>
          <dl class="trace-facts">
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
            <Fact name="Starts">
              {formatNs(startNs)} <When ns={slice.startNs} />
            </Fact>
            <OnTrack track={slice.track} answer={answer} />
            <Fact name="Category">
              {slice.category === "" ? FAMILY_WORDS[slice.family] : slice.category}
            </Fact>
            <LiesIn stack={slice.stack} onSlice={onSlice} />
          </dl>
          {slice.partners.length > 0 && (
            <>
              <h3>Linked with</h3>
              <ul class="trace-partners">
                {slice.partners.map((one) => (
                  <li key={`${one.row} ${one.relation}`}>
                    <span class="quiet">
                      {RELATION[one.relation][one.outgoing ? 0 : 1]}
                    </span>{" "}
                    <Go partner={one} onSlice={onSlice} />{" "}
                    <span class="quiet">{distance(one, slice.durationNs)}</span>
                  </li>
                ))}
              </ul>
            </>
          )}
          <Arguments args={slice.args} problem={slice.argsProblem} />
        </>
      )}
    </Dock>
  );
}

function InstantDetails(props: DetailsProps) {
  const { view, answer, base, moves, heightPx } = props;
  const { instant, error } = props.instant;
  const sinceBase = instant === null ? 0 : since(base, BigInt(instant.timeNs));
  return (
    <Dock
      label="The chosen instant"
      title={instant?.name ?? ""}
      {...(instant !== null && { colour: markColour(view.theme, instant.kind) })}
      heightPx={heightPx}
      error={error}
      close={() => view.setParams(sliceWords(null))}
      actions={
        <>
          <Act text="Previous instant" run={() => moves.nextInstant(-1)} />
          <Act text="Next instant" run={() => moves.nextInstant(1)} />
        </>
      }
    >
      {instant !== null && (
        <>
          <dl class="trace-facts">
            <Fact name="At">
              {formatNs(sinceBase)}{" "}
              <span class="quiet">{formatNsExact(sinceBase)} since the beginning</span>{" "}
              <When ns={instant.timeNs} />
            </Fact>
            <OnTrack track={instant.track} answer={answer} />
            <Fact name="Category">
              {instant.kind === "other" && instant.category !== ""
                ? instant.category
                : KIND_WORDS[instant.kind]}
            </Fact>
            <LiesIn
              stack={instant.stack}
              onSlice={(next) => moves.choose(next, true)}
            />
          </dl>
          <Arguments args={instant.args} problem={instant.argsProblem} />
        </>
      )}
    </Dock>
  );
}

function RangeDetails(props: DetailsProps) {
  const { view, base, params, sums, moves, heightPx } = props;
  const { range, rangeTracks } = params;
  if (range === null) return null;
  const of =
    rangeTracks === ""
      ? ""
      : ` on ${formatInteger(countTracks(rangeTracks))} chosen tracks`;
  const spanNs = Number(range.high - range.low);
  return (
    <Dock
      label="The chosen range"
      title={`${formatNs(spanNs)} between the marks`}
      heightPx={heightPx}
      close={() => view.setParams(rangeWords(null, ""))}
      actions={
        <>
          <span class="quiet">
            {sums === null
              ? "Summing up"
              : `${formatInteger(sums.numSlices)} slices of ${formatInteger(sums.numNames)} names${of}`}
          </span>
          <Act
            text="Zoom to it"
            run={() =>
              props.window.setWindow({
                low: since(base, range.low),
                high: since(base, range.high),
              })
            }
          />
        </>
      }
    >
      {sums !== null && (
        <RangeTable
          sums={sums}
          theme={view.theme}
          heightPx={Math.max(160, heightPx - 96)}
          onSlice={(next) => moves.choose(next, true)}
        />
      )}
    </Dock>
  );
}

function Fact(props: { readonly name: string; readonly children: ComponentChildren }) {
  return (
    <div>
      <dt>{props.name}</dt>
      <dd>{props.children}</dd>
    </div>
  );
}

function When({ ns }: { readonly ns: string }) {
  return <span class="quiet">{formatInstant(Number(BigInt(ns) / 1_000_000n))}</span>;
}

function OnTrack(props: { readonly track: string; readonly answer: TraceResponse }) {
  const { sources, tracks } = props.answer;
  const track = tracks.find(
    (one) => `${sources[one.source]?.id ?? ""}:${one.index}` === props.track,
  );
  const rank = track?.rank ?? null;
  return (
    <Fact name="On">
      {track === undefined ? props.track : `${track.name} · ${track.process}`}
      {rank !== null && <span class="quiet"> rank {rank}</span>}
    </Fact>
  );
}

/** A slice's name that leads to it. */
function Go(props: {
  readonly partner: TracePartner;
  readonly onSlice: (slice: SliceRef) => void;
}) {
  const { name, source, row, durationNs } = props.partner;
  return (
    <button
      type="button"
      class="text-button trace-go"
      title={`${name}\n${formatNs(durationNs)}`}
      onClick={() => props.onSlice({ source, row })}
    >
      {name}
    </button>
  );
}

/** The slices around, innermost first. */
function LiesIn(props: {
  readonly stack: readonly TracePartner[];
  readonly onSlice: (slice: SliceRef) => void;
}) {
  if (props.stack.length === 0) return null;
  return (
    <Fact name="Lies in">
      <ol class="trace-partners">
        {props.stack.map((above) => (
          <li key={above.row}>
            <Go partner={above} onSlice={props.onSlice} />
          </li>
        ))}
      </ol>
    </Fact>
  );
}

function Arguments(props: {
  readonly args: readonly TraceArg[];
  readonly problem: string;
}) {
  const { args, problem } = props;
  return (
    <>
      <h3>Arguments</h3>
      {problem !== "" && <p class="quiet">They cannot be read: {problem}</p>}
      {args.length === 0 && problem === "" && <p class="quiet">None were recorded.</p>}
      <dl class="trace-facts trace-args">
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

function distance({ startNs }: TracePartner, durationNs: number): string {
  if (startNs < 0) return `${formatNs(-startNs)} before`;
  return startNs >= durationNs
    ? `${formatNs(startNs)} after it began`
    : `${formatNs(startNs)} into it`;
}
