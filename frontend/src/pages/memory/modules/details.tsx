/** One module: its moments in this window, over windows, and on every rank. */

import { useSignal } from "@preact/signals";
import { useMemo, useState } from "preact/hooks";
import type {
  ModuleMoments,
  ModuleOverWindows,
  ModuleResponse,
  ModulesResponse,
  ModuleWindow,
  XKind,
} from "../../../api/types.gen";
import { useLive } from "../../../api/use_live";
import { formatBytesExact, formatInteger, type ByteUnit } from "../../../base/bytes";
import { formatSeconds } from "../../../base/durations";
import { originOf } from "../../../model/words/origin";
import { formatExact, formatQuantity } from "../../../model/words/quantity";
import { LineChart } from "../../../widgets/line_chart/line_chart";
import type { ChartLine, XRange } from "../../../widgets/line_chart/types";
import { RankBars, stripOfValues } from "../../../widgets/rank_bars/rank_bars";
import { Waiting } from "../../../widgets/state/state";
import { CloseDetails } from "../../shared/panels/close_details";
import type { ViewProps } from "../../shared/view_props";
import { subjectOf } from "./params";
import { STATE_WORDS } from "./words";

const PART_PX = 168;

export interface DetailsProps {
  readonly view: ViewProps;
  readonly data: ModulesResponse;
  readonly fqn: string;
  /** Which of the module's calls the table shows; -1 for none. */
  readonly callShown: number;
  readonly close: () => void;
}

export function Details(props: DetailsProps) {
  const { view, data, fqn } = props;
  const query = {
    ...subjectOf(data),
    module: fqn,
    state: data.state,
    call: data.call,
  };
  const live = useLive(view.client, "module", query, view.pollMs);
  const answer = live.data?.module === fqn ? live.data : null;
  return (
    <section class="modules-details" aria-label={`Details of ${fqn}`}>
      <header>
        <h2 title={fqn}>{fqn}</h2>
        <CloseDetails close={props.close} />
      </header>
      <Waiting error={live.error} hasContent={answer !== null} blocksPx={[PART_PX]} />
      {answer !== null && (
        <>
          <OwnFacts answer={answer} byteUnit={view.byteUnit} />
          <Moments answer={answer} view={view} callShown={props.callShown} />
          <OverWindows answer={answer} data={data} view={view} />
          <OverRanks answer={answer} data={data} view={view} />
        </>
      )}
    </section>
  );
}

function OwnFacts({
  answer,
  byteUnit,
}: {
  readonly answer: ModuleResponse;
  readonly byteUnit: ByteUnit;
}) {
  const { type, isFsdp, paramBytes, bufferBytes } = answer;
  const size = (word: string, bytes: number | null) =>
    bytes !== null &&
    bytes > 0 && (
      <span title={formatBytesExact(bytes)}>
        {word} {formatQuantity(bytes, "bytes", byteUnit)}
      </span>
    );
  return (
    <p class="quiet">
      <span>{type}</span>
      {isFsdp && <span>FSDP module</span>}
      {size("own params", paramBytes)}
      {size("own buffers", bufferBytes)}
    </p>
  );
}

interface PartProps {
  readonly answer: ModuleResponse;
  readonly view: ViewProps;
}

interface MomentsProps extends PartProps {
  readonly callShown: number;
}

function Moments(props: MomentsProps) {
  const { answer } = props;
  const { moments } = answer;
  const order = useMemo(() => Array.from(moments.state.keys()), [moments]);
  if (order.length === 0) {
    return (
      <p class="quiet">
        It does not run by itself in this step: the modules below it do.
      </p>
    );
  }
  return (
    <div class="modules-part">
      <h3>Through this step</h3>
      <div
        class="table-scroll modules-moments"
        style={{ maxHeight: `${PART_PX}px` }}
        tabIndex={0}
        role="region"
        aria-label="Moments of the module"
      >
        <table class="data-table">
          <thead>
            <tr>
              <th scope="col">State</th>
              <th scope="col" class="num">
                At
              </th>
              <th scope="col" class="num">
                Rank total
              </th>
              <th scope="col" class="num">
                Module
              </th>
            </tr>
          </thead>
          <tbody>
            {order.map((i) => (
              <Moment key={i} i={i} moments={moments} {...props} />
            ))}
          </tbody>
        </table>
      </div>
      {moments.numLeftOut > 0 && (
        <p class="quiet">
          {formatInteger(moments.numLeftOut)} moments of further calls are not listed.
        </p>
      )}
    </div>
  );
}

function Moment(
  props: MomentsProps & { readonly i: number; readonly moments: ModuleMoments },
) {
  const { i, moments, answer, view } = props;
  const state = moments.stateNames[moments.state[i] ?? -1];
  if (state === undefined) return null;
  const call = moments.call[i] ?? 0;
  const timeUs = moments.timeUs[i] ?? NaN;
  const shown = state === answer.state && call === props.callShown;
  const number = (bytes: number | undefined) => (
    <td class="num" title={formatExact(bytes ?? NaN, "bytes")}>
      {formatQuantity(bytes ?? NaN, "bytes", view.byteUnit)}
    </td>
  );
  return (
    <tr aria-current={shown ? "true" : undefined}>
      <td>
        <button
          type="button"
          class="text-button"
          onClick={() =>
            view.setParams({ state, call: call === 0 ? null : call.toString() }, "push")
          }
        >
          {STATE_WORDS[state]}
          {call > 0 && ` · call ${formatInteger(call + 1)}`}
        </button>
      </td>
      <td class="num">{Number.isFinite(timeUs) ? formatSeconds(timeUs / 1e6) : "–"}</td>
      {number(moments.totalBytes[i])}
      {number(moments.heldBytes[i])}
    </tr>
  );
}

function OverWindows({
  answer,
  data,
  view,
}: PartProps & { readonly data: ModulesResponse }) {
  const cursor = useSignal<number | null>(null);
  const [range, setRange] = useState<XRange | null>(null);
  const { x, lines } = useMemo(
    () => windowLines(answer.overWindows, data.windows),
    [answer.overWindows, data.windows],
  );
  const { windows, ofWindows } = answer.overWindows;
  const title = `${formatInteger(windows.length)} tracked steps`;
  if (windows.length < 2) {
    return (
      <div class="modules-part">
        <h3>Over tracked steps</h3>
        <p class="quiet">
          Only this step was tracked on this rank. Raise <code>schedule.active</code>,
          or let the schedule repeat, to see how the module changes.
        </p>
      </div>
    );
  }
  return (
    <div class="modules-part">
      <LineChart
        label={`${answer.module}, ${STATE_WORDS[answer.state]}`}
        title={title}
        unit="bytes"
        byteUnit={view.byteUnit}
        x={x}
        lines={lines}
        extent={extentOf(lines)}
        range={range}
        onRange={setRange}
        cursor={cursor}
        theme={view.theme}
        heightPx={PART_PX - 32}
        origin={originOf(answer.run)}
      />
      {windows.length < ofWindows && (
        <p class="quiet">
          The newest {formatInteger(windows.length)} of {formatInteger(ofWindows)}.
        </p>
      )}
    </div>
  );
}

function extentOf(lines: readonly ChartLine[]): XRange {
  const x = lines[0]?.x;
  return { low: x?.[0] ?? 0, high: x?.[x.length - 1] ?? 1 };
}

function OverRanks({
  answer,
  data,
  view,
}: PartProps & { readonly data: ModulesResponse }) {
  const { overRanks } = answer;
  const held = data.measure === "held";
  const strip = useMemo(
    () =>
      stripOfValues(overRanks.rank, held ? overRanks.heldBytes : overRanks.totalBytes),
    [overRanks, held],
  );
  const num = overRanks.rank.length;
  if (num < 2) {
    return (
      <div class="modules-part">
        <h3>Over ranks</h3>
        <p class="quiet">Only this rank tracked this step.</p>
      </div>
    );
  }
  const value = (bytes: number | undefined): string =>
    formatQuantity(bytes ?? NaN, "bytes", view.byteUnit);
  return (
    <div class="modules-part">
      <h3>
        {held ? "This module" : "Rank total"} over {formatInteger(num)} ranks
        {num < overRanks.ofRanks && (
          <span class="quiet"> of {formatInteger(overRanks.ofRanks)} read so far</span>
        )}
      </h3>
      <RankBars
        label={`${answer.module} by rank`}
        strip={strip}
        order="rank"
        rank={view.ranks.rank}
        filter={null}
        facts={(i) => [
          ["Rank total", value(overRanks.totalBytes[i])],
          ["", formatExact(overRanks.totalBytes[i] ?? NaN, "bytes")],
          ["This module", value(overRanks.heldBytes[i])],
          ["", formatExact(overRanks.heldBytes[i] ?? NaN, "bytes")],
        ]}
        onPick={view.chooseRank}
        theme={view.theme}
        byteUnit={view.byteUnit}
        heightPx={PART_PX - 8}
      />
    </div>
  );
}

/**
 * Over steps where every window has one and they ascend, else over the clock: windows
 * taken by hand have no step, and a restarted training counts its steps again.
 */
export function windowLines(
  over: ModuleOverWindows,
  windows: readonly ModuleWindow[],
): { readonly x: XKind; readonly lines: readonly ChartLine[] } {
  const ascending = over.step.every(
    (step, i) => Number.isFinite(step) && (i === 0 || step > (over.step[i - 1] ?? NaN)),
  );
  const times = new Map(windows.map((one) => [one.id, one.timeMs]));
  const kept = Array.from(over.windows.keys()).filter(
    (i) => ascending || times.has(over.windows[i] ?? ""),
  );
  const x = Float64Array.from(kept, (i) =>
    ascending ? (over.step[i] ?? NaN) : (times.get(over.windows[i] ?? "") ?? NaN),
  );
  const line = (
    id: string,
    label: string,
    values: Float64Array,
    colour: number,
  ): ChartLine => {
    const y = Float64Array.from(kept, (i) => values[i] ?? NaN);
    return { id, label, x, y, yLow: y, colour };
  };
  const lines = [line("total", "Rank total", over.totalBytes, 0)];
  if (over.heldBytes.some((value) => Number.isFinite(value))) {
    lines.push(line("held", "This module", over.heldBytes, 1));
  }
  return { x: ascending ? "step" : "wall", lines };
}
