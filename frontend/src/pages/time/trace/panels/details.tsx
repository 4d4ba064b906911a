import type { TracePartner, TraceSliceResponse } from "../../../../api/types.gen";
import { formatInteger, formatShare } from "../../../../base/bytes";
import { formatInstant } from "../../../../base/durations";
import type { XRange } from "../../../../widgets/plot/range";
import { Failure } from "../../../../widgets/state/state";
import { Switch, TextButton } from "../../../shared/controls/choices";
import { Facts, type FactRows } from "../../../../widgets/facts/facts";
import { Drawer } from "../../../shared/panels/drawer";
import { AnswerTable } from "../../../shared/table/answer_table";
import { traceColour } from "../paint/lines";
import { around } from "../plot/layout";
import { RANGE_BY, since } from "../state/params";
import type { Timeline } from "../state/timeline";
import { familyWords, formatNs, formatNsExact } from "../text";

interface DetailsProps {
  readonly trace: Timeline;
  readonly heightPx: number;
}

export function Details(props: DetailsProps) {
  const { slice, range } = props.trace.state;
  if (slice === null && range === null) return null;
  return (
    <aside class="inspector trace-dock" style={{ maxHeight: `${props.heightPx}px` }}>
      {slice !== null && <SliceDetails {...props} isInstant={slice.row < 0} />}
      {range !== null && <RangeDetails {...props} range={range} />}
    </aside>
  );
}

function SliceDetails(props: DetailsProps & { readonly isInstant: boolean }) {
  const { trace, isInstant } = props;
  const { slice, selected, view } = trace;
  function zoom(): void {
    if (selected === null) return;
    trace.setWindow(around(selected.startNs, selected.endNs, 0.1));
    trace.scrollTo.value = selected;
  }
  const acts = isInstant ? (
    <>
      <TextButton press={() => trace.instant(-1)}>Previous instant</TextButton>
      <TextButton press={() => trace.instant(1)}>Next instant</TextButton>
    </>
  ) : (
    <>
      <TextButton press={zoom}>Zoom to it</TextButton>
      <TextButton
        press={() => trace.setState({ find: slice?.name.slice(0, 120) ?? "" })}
      >
        Search for its name
      </TextButton>
    </>
  );
  return (
    <Drawer
      label={isInstant ? "The chosen instant" : "The chosen slice"}
      title={
        slice !== null && (
          <span class="trace-dock-name" title={slice.name}>
            <span
              class="swatch"
              style={{ background: traceColour(view.theme, slice.family) }}
            />
            {slice.name}
          </span>
        )
      }
      actions={slice !== null && acts}
      close={trace.close}
    >
      {trace.error !== null && <Failure failure={trace.error} />}
      {slice !== null && (
        <SliceFacts trace={trace} slice={slice} isInstant={isInstant} />
      )}
    </Drawer>
  );
}

function SliceFacts(props: {
  readonly trace: Timeline;
  readonly slice: TraceSliceResponse;
  readonly isInstant: boolean;
}) {
  const { trace, slice, isInstant } = props;
  const { durationNs, selfNs, numChildren, stack, partners, args, argsProblem } = slice;
  const track = trace.answer.tracks.find(({ key }) => key === slice.track);
  const startNs = since(trace.base, slice.startNs);
  const when = formatInstant(Number(BigInt(slice.startNs) / 1_000_000n));
  const rest = `, the rest in ${formatInteger(numChildren)} inside`;
  const ofWhole = formatShare(selfNs, durationNs) + (numChildren > 0 ? rest : "");
  const exactly = `${formatNsExact(startNs)} since the beginning, ${when}`;
  const rank = track?.rank ?? null;
  const category = slice.family === "oom" ? "" : slice.category;
  const facts: FactRows = [
    ...(isInstant
      ? ([["At", formatNs(startNs), exactly]] as const)
      : ([
          ["Duration", formatNs(durationNs), formatNsExact(durationNs)],
          ["Self time", formatNs(selfNs), ofWhole],
          ["Starts", formatNs(startNs), when],
        ] as const)),
    [
      "On",
      track ? `${track.name} · ${track.process}` : slice.track,
      rank === null ? "" : `rank ${rank}`,
    ],
    ["Category", category === "" ? familyWords(slice.family) : category, ""],
    ...(stack.length > 0 ? ([["Parents", <Linked list={stack} />, ""]] as const) : []),
  ];

  function Linked({ list }: { readonly list: readonly TracePartner[] }) {
    const isPartner = list === partners;
    return (
      <ul>
        {list.map((partner) => (
          <li key={`${partner.row} ${partner.words}`}>
            {isPartner && <span class="quiet">{partner.words} </span>}
            <button
              type="button"
              class="text-button cut trace-go"
              title={`${partner.name}\n${formatNs(partner.durationNs)}`}
              onClick={() => trace.choose(partner, true)}
            >
              {partner.name}
            </button>
            {isPartner && <span class="quiet"> {partner.when}</span>}
          </li>
        ))}
      </ul>
    );
  }

  return (
    <>
      <Facts rows={facts} />
      {partners.length > 0 && (
        <>
          <h3>Linked with</h3>
          <Linked list={partners} />
        </>
      )}
      <h3>Arguments</h3>
      {argsProblem !== "" && <p class="quiet">They cannot be read: {argsProblem}</p>}
      {args.length + argsProblem.length === 0 && (
        <p class="quiet">None were recorded.</p>
      )}
      <Facts rows={args.map(({ name, value }) => [name, value])} />
    </>
  );
}

function RangeDetails(props: DetailsProps & { readonly range: XRange }) {
  const { trace, range } = props;
  const { sums, state, setWindow, view } = trace;
  const of = state.rangeTracks === "" ? "" : ", on the chosen tracks";
  return (
    <Drawer
      label="The chosen range"
      title={`${formatNs(range.high - range.low)} between the marks${of}`}
      actions={<TextButton press={() => setWindow(range)}>Zoom to it</TextButton>}
      close={trace.close}
    >
      {sums === null ? (
        <p class="quiet">Summing up</p>
      ) : (
        <AnswerTable
          view={view}
          table={sums.table}
          word="sums_sort"
          shell={view}
          head={
            <>
              <Switch view={view} of={RANGE_BY} label="Sums of the range" />
              <span class="quiet">{sums.table.summary}</span>
            </>
          }
          onSelect={(row) => {
            const source = sums.sources[sums.source[row] ?? 0] ?? "";
            trace.choose({ source, row: sums.row[row] ?? 0 }, true);
          }}
          heightPx={Math.max(160, props.heightPx - 132)}
        />
      )}
    </Drawer>
  );
}
