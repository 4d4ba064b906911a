/** Docked beside the timeline: the chosen slice or instant in full, or a range summed up. */

import { Fragment, type ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import type {
  TracePartner,
  TraceRangeResponse,
  TraceSliceResponse,
} from "../../../api/types.gen";
import { formatInteger, formatShare } from "../../../base/bytes";
import { formatInstant } from "../../../base/durations";
import type { Theme } from "../../../base/tokens";
import type { Sort } from "../../../model/shown_rows";
import {
  barOf,
  countCell,
  longestOf,
  numberColumn,
  textColumn,
} from "../../../widgets/row_table/columns";
import {
  RowTable,
  type RowCell,
  type RowColumn,
} from "../../../widgets/row_table/row_table";
import { useSort } from "../../../widgets/row_table/use_sort";
import { Failure } from "../../../widgets/state/state";
import { CloseDetails } from "../../shared/panels/close_details";
import { familyColour } from "../profiled/family_colours";
import { traceColour } from "./paint/lines";
import { around, type NsRange } from "./plot/layout";
import { since } from "./state/params";
import type { Timeline } from "./state/timeline";
import { FAMILY_WORDS, formatNs, formatNsExact } from "./words";

interface DetailsProps {
  readonly trace: Timeline;
  readonly heightPx: number;
}

export function Details(props: DetailsProps) {
  const { slice, range } = props.trace.state;
  if (slice !== null) return <SliceDetails {...props} isInstant={slice.row < 0} />;
  return range === null ? null : <RangeDetails {...props} range={range} />;
}

type Act = readonly [text: string, run: () => void];

function Dock(
  props: DetailsProps & {
    readonly label: string;
    readonly colour?: string | undefined;
    readonly title: string;
    readonly said?: string;
    readonly acts: readonly Act[];
    readonly children: ComponentChildren;
  },
) {
  const { label, colour, title, said, trace } = props;
  return (
    <section
      class="trace-dock"
      aria-label={label}
      style={{ maxHeight: `${props.heightPx}px` }}
    >
      <header>
        <h2 class="trace-dock-name" title={title}>
          {colour !== undefined && (
            <span class="swatch" style={{ background: colour }} />
          )}
          {title}
        </h2>
        <CloseDetails close={trace.close} />
      </header>
      <div class="trace-dock-acts">
        {said !== undefined && <span class="quiet">{said}</span>}
        {props.acts.map(([text, run]) => (
          <button key={text} type="button" class="text-button" onClick={run}>
            {text}
          </button>
        ))}
      </div>
      {props.children}
    </section>
  );
}

const RELATION: Readonly<Record<TracePartner["relation"], readonly [string, string]>> =
  {
    parent: ["in", "in"],
    launch: ["launches", "launched by"],
    fwdbwd: ["backward of it", "forward of it"],
    flow: ["leads to", "comes from"],
  };

function SliceDetails(props: DetailsProps & { readonly isInstant: boolean }) {
  const { trace, isInstant } = props;
  const { slice, selected, view } = trace;
  const acts: readonly Act[] = isInstant
    ? [
        ["Previous instant", () => trace.instant(-1)],
        ["Next instant", () => trace.instant(1)],
      ]
    : [
        [
          "Zoom to it",
          () => {
            if (selected === null) return;
            trace.setWindow(around(selected.startNs, selected.endNs, 0.1));
            trace.scrollTo.value = selected;
          },
        ],
        [
          "Find its name",
          () => trace.setState({ find: slice?.name.slice(0, 120) ?? "" }),
        ],
      ];
  return (
    <Dock
      {...props}
      label={isInstant ? "The chosen instant" : "The chosen slice"}
      title={slice?.name ?? ""}
      colour={slice === null ? undefined : traceColour(view.theme, slice.family)}
      acts={slice === null ? [] : acts}
    >
      {trace.error !== null && <Failure failure={trace.error} />}
      {slice !== null && <Facts trace={trace} slice={slice} isInstant={isInstant} />}
    </Dock>
  );
}

function Facts(props: {
  readonly trace: Timeline;
  readonly slice: TraceSliceResponse;
  readonly isInstant: boolean;
}) {
  const { trace, slice, isInstant } = props;
  const { durationNs, selfNs, numChildren, stack, partners, args, argsProblem } = slice;
  const { sources, tracks } = trace.answer;
  const key = (one: (typeof tracks)[number]) =>
    `${sources[one.source]?.id ?? ""}:${one.index}`;
  const track = tracks.find((one) => key(one) === slice.track);
  const startNs = since(trace.base, slice.startNs);
  const when = formatInstant(Number(BigInt(slice.startNs) / 1_000_000n));
  const rest = `, the rest in ${formatInteger(numChildren)} inside`;
  const ofWhole = formatShare(selfNs, durationNs) + (numChildren > 0 ? rest : "");
  const exactly = `${formatNsExact(startNs)} since the beginning, ${when}`;
  const lies = track && `${track.name} · ${track.process}`;
  const rank = track?.rank ?? null;
  const category = slice.family === "oom" ? "" : slice.category;
  const facts: readonly (readonly [string, ComponentChildren, string])[] = [
    ...(isInstant
      ? ([["At", formatNs(startNs), exactly]] as const)
      : ([
          ["Takes", formatNs(durationNs), formatNsExact(durationNs)],
          ["Itself", formatNs(selfNs), ofWhole],
          ["Starts", formatNs(startNs), when],
        ] as const)),
    ["On", lies ?? slice.track, rank === null ? "" : `rank ${rank}`],
    ["Category", category === "" ? FAMILY_WORDS[slice.family] : category, ""],
    ...(stack.length > 0 ? ([["Lies in", <Linked list={stack} />, ""]] as const) : []),
  ];

  function Linked({ list }: { readonly list: readonly TracePartner[] }) {
    return (
      <ul>
        {list.map((one) => (
          <li key={`${one.row} ${one.relation}`}>
            {list === partners && (
              <span class="quiet">{RELATION[one.relation][one.outgoing ? 0 : 1]} </span>
            )}
            <button
              type="button"
              class="text-button cut trace-go"
              title={`${one.name}\n${formatNs(one.durationNs)}`}
              onClick={() => trace.choose(one, true)}
            >
              {one.name}
            </button>
            {list === partners && (
              <span class="quiet"> {distance(one, durationNs)}</span>
            )}
          </li>
        ))}
      </ul>
    );
  }

  return (
    <>
      <dl class="facts">
        {facts.map(([name, value, note]) => (
          <Fragment key={name}>
            <dt>{name}</dt>
            <dd>
              {value} <span class="quiet">{note}</span>
            </dd>
          </Fragment>
        ))}
      </dl>
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
      <dl class="facts trace-args">
        {args.map(({ name, value }) => (
          <Fragment key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </Fragment>
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

const USUAL: Sort = { key: "total", descending: true };

function RangeDetails(props: DetailsProps & { readonly range: NsRange }) {
  const { trace, range } = props;
  const { sums, state, setWindow } = trace;
  const of = state.rangeTracks === "" ? "" : " on the chosen tracks";
  const said =
    sums === null
      ? "Summing up"
      : `${formatInteger(sums.numSlices)} slices of ${formatInteger(sums.numNames)} names${of}`;
  return (
    <Dock
      {...props}
      label="The chosen range"
      title={`${formatNs(range.high - range.low)} between the marks`}
      said={said}
      acts={[["Zoom to it", () => setWindow(range)]]}
    >
      {sums !== null && <RangeTable {...props} sums={sums} />}
    </Dock>
  );
}

function RangeTable(props: DetailsProps & { readonly sums: TraceRangeResponse }) {
  const { sums, trace } = props;
  const { theme } = trace.view;
  const columns = useMemo(() => rangeColumns(sums, theme), [sums, theme]);
  const [word, setWord] = useState<string | null>(null);
  const sorted = useSort(columns, sums.names.length, USUAL, word ?? undefined, setWord);
  return (
    <RowTable
      label="Slices of the range by name"
      columns={columns}
      {...sorted}
      selected={null}
      onSelect={(row) => {
        const source = sums.sources[sums.source[row] ?? 0] ?? "";
        trace.choose({ source, row: sums.row[row] ?? 0 }, true);
      }}
      empty="Nothing runs in this range."
      heightPx={Math.max(160, props.heightPx - 96)}
    />
  );
}

export function rangeColumns(
  {
    names,
    categories,
    families,
    family,
    count,
    totalNs,
    selfNs,
    maxNs,
  }: TraceRangeResponse,
  theme: Theme,
): readonly RowColumn[] {
  const longest = longestOf(totalNs);
  const colourOf = (row: number): string =>
    familyColour(theme, families[family[row] ?? 0] ?? "other");
  const time = (key: string, title: string, values: Float64Array, hint: string) => ({
    ...numberColumn(key, title, "68px", values, timeCell, hint),
    exported: { name: `${key} (ns)`, values },
  });
  const meanNs = totalNs.map((total, row) => total / Math.max(1, count[row] ?? 0));
  const total = (ns: number, row: number): RowCell => ({
    ...timeCell(ns),
    bar: barOf(ns, longest, colourOf(row)),
  });
  const touching = "Slices that touch the range";
  const own = "The same without what lies in slices inside them";
  const whole = "The whole duration of the longest; click a row to see it";
  return [
    textColumn("name", "Name", "minmax(112px, 1fr)", names, undefined, (text, row) => ({
      text,
      swatch: colourOf(row),
    })),
    {
      ...time("total", "Total", totalNs, "What of their times lies in the range"),
      cell: (row) => total(totalNs[row] ?? NaN, row),
    },
    numberColumn("count", "Count", "52px", count, countCell, touching),
    time("self", "Self", selfNs, own),
    time("mean", "Mean", meanNs, "Total by count"),
    time("max", "Longest", maxNs, whole),
    textColumn("category", "Category", "112px", categories),
  ];
}

function timeCell(ns: number): RowCell {
  return { text: formatNs(ns), title: formatNsExact(ns) };
}
