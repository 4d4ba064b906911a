/**
 * Compare: what lives at one moment against what lives at another, of one run or of two;
 * the peaks of all ranks beside each other; and the times of one profile against another.
 */

import { useMemo, useRef } from "preact/hooks";
import { useLive } from "../../api/use_live";
import { useOnce } from "../../api/use_once";
import { useCommands } from "../../base/use_commands";
import { exportCommands } from "../../widgets/export/export_commands";
import type { ExportSource } from "../../widgets/export/source";
import { ChartButton } from "../../widgets/line_chart/chart_button";
import { Failure, Skeleton, Waiting } from "../../widgets/state/state";
import { Segmented } from "../shared/controls/choices";
import { NoHistory, Opening, OpeningFailed } from "../memory/history/opening";
import {
  chosenDevice,
  chosenHistory,
  useHistory,
  type FollowedHistory,
} from "../memory/history/use_history";
import type { ViewProps } from "../shared/view_props";
import { PARTS, readCompare, type CompareParams } from "./params";
import { ProfilesPart } from "./profiles/part";
import { RanksPart } from "./ranks_part";
import { SideBar } from "./side_bar";
import { lastMoment, otherHistory } from "./sides";
import { useOtherRun } from "./use_other_run";
import { PART_WORDS } from "./words";
import type { DifferenceProps } from "./difference_parts";
import { ChangeFlame } from "./charts/flame_part";
import { Headline } from "./headline";
import { Overlay } from "./charts/overlay_part";
import { Rows } from "./rows/part";
import { Waterfall } from "./charts/waterfall_part";
import "../memory/history/history.css";
import "./compare.css";

export function CompareView(props: ViewProps) {
  // Traces alone have no allocator histories.
  const usual = props.run.madeOf === "traces" ? "profiles" : "two";
  const params = useMemo(() => readCompare(props.params, usual), [props.params, usual]);
  const exporter = useRef<ExportSource | null>(null);
  useCommands(props.commands, () =>
    exportCommands({
      view: "compare",
      subject: "comparison",
      formats: ["csv", "json"],
      source: () => exporter.current,
      say: props.say,
    }),
  );
  return (
    <div class="history">
      <div class="history-bar">
        <Segmented
          label="What is compared"
          options={PARTS}
          chosen={params.part}
          words={(part) => PART_WORDS[part]}
          onChoose={(part) =>
            props.setParams({ part: part === usual ? null : part }, "push")
          }
        />
      </div>
      {params.part === "two" && (
        <Two view={props} params={params} exporter={exporter} />
      )}
      {params.part === "profiles" && (
        <ProfilesPart view={props} params={params} exporter={exporter} />
      )}
      {params.part === "ranks" && (
        <RanksPart view={props} history={params.a.history} exporter={exporter} />
      )}
    </div>
  );
}

interface TwoProps {
  readonly view: ViewProps;
  readonly params: CompareParams;
  readonly exporter: { current: ExportSource | null };
}

function Two({ view, params, exporter }: TwoProps) {
  const { client, run, byteUnit, setParams } = view;
  const { known, runs, bRun } = useOtherRun(view, params.bRun);
  const aList = useLive(client, "histories", { run: run.id }, view.pollMs);
  const bList = useLive(
    client,
    "histories",
    bRun === run.id || known === null ? null : { run: bRun },
    view.pollMs,
  );
  const aHistories = aList.data;
  const bHistories =
    bRun === run.id ? aHistories : bList.data?.run.id === bRun ? bList.data : null;
  const aId = aHistories === null ? "" : chosenHistory(aHistories, params.a.history);
  const bId =
    bHistories === null
      ? ""
      : params.b.history !== ""
        ? chosenHistory(bHistories, params.b.history)
        : otherHistory(bHistories, aId, bRun === run.id);
  const a = useHistory(client, run.id, aId === "" ? null : aId);
  const b = useHistory(client, bRun, bId === "" ? null : bId);
  const aFacts = a.answer?.facts ?? null;
  const bFacts = b.answer?.facts ?? null;
  const aDevice = chosenDevice(aFacts, params.a.device);
  // Unless it was chosen, B is of the same device as A.
  const bDevice = chosenDevice(bFacts, params.b.device ?? aDevice?.device ?? null);
  const same = aId === bId && bRun === run.id && aDevice?.device === bDevice?.device;
  const untold =
    params.b.moment === null && params.b.history === "" && params.a.moment === null;
  const bMoment =
    same && untold && bDevice !== null ? lastMoment(bDevice) : params.b.moment;
  const ready = aDevice !== null && bDevice !== null;
  const live = useOnce(
    client,
    "compare",
    ready
      ? {
          run: run.id,
          history: aId,
          device: aDevice.device,
          moment: params.a.moment,
          b_run: bRun,
          b_history: bId,
          b_device: bDevice.device,
          b_moment: bMoment,
          match: params.match === "exact" ? null : params.match,
        }
      : null,
  );
  if (aHistories?.histories.length === 0) {
    return (
      <NoHistory histories={aHistories} rank={null} showAllRanks={() => undefined} />
    );
  }
  const listError = aList.error ?? bList.error;
  return (
    <>
      <div class="compare-sides">
        <SideBar
          name="A"
          runs={[]}
          run={run.id}
          onRun={() => undefined}
          histories={aHistories}
          history={aId}
          onHistory={(history) => {
            // B stays what it is, also where nobody had chosen it.
            setParams(
              { history, history_device: null, moment: null, b_history: bId },
              "push",
            );
          }}
          facts={aFacts}
          device={aDevice}
          onDevice={(device) =>
            setParams({ history_device: device.toString(), moment: null }, "push")
          }
          moment={params.a.moment}
          onMoment={(moment) =>
            setParams({
              moment: moment === null ? null : moment.toString(),
              b_history: bId,
            })
          }
          byteUnit={byteUnit}
        />
        <SideBar
          name="B"
          runs={runs}
          run={bRun}
          onRun={(id) => {
            const b_run = id === run.id ? null : id;
            setParams(
              { b_run, b_history: null, b_device: null, b_moment: null },
              "push",
            );
          }}
          histories={bHistories}
          history={bId}
          onHistory={(b_history) =>
            setParams({ b_history, b_device: null, b_moment: null }, "push")
          }
          facts={bFacts}
          device={bDevice}
          onDevice={(device) =>
            setParams({ b_device: device.toString(), b_moment: null }, "push")
          }
          moment={bMoment}
          onMoment={(moment) =>
            setParams({
              b_moment: moment === null ? null : moment.toString(),
              b_history: bId,
            })
          }
          byteUnit={byteUnit}
        />
        <ChartButton
          label="Exchange A and B"
          icon="swap"
          onClick={() => {
            if (bRun !== run.id) {
              view.say(
                "A is of the run chosen on the left: choose the other run there",
              );
              return;
            }
            const text = (value: number | null): string | null =>
              value === null ? null : value.toString();
            setParams(
              {
                history: bId,
                history_device: text(bDevice?.device ?? null),
                moment: text(bMoment),
                b_history: aId,
                b_device: text(aDevice?.device ?? null),
                b_moment: text(params.a.moment),
              },
              "push",
            );
          }}
        />
      </div>
      <Waiting error={listError} hasContent={aHistories !== null} />
      <Way of={a} name="A" byteUnit={byteUnit} />
      {(bId !== aId || bRun !== run.id) && <Way of={b} name="B" byteUnit={byteUnit} />}
      <Waiting
        error={live.error}
        hasContent={live.data !== null}
        note="It is asked again by itself."
      />
      {ready && live.data === null && live.error === null && (
        <Skeleton heightPx={520} />
      )}
      {ready && live.data !== null && (
        <Difference
          view={view}
          params={params}
          answer={live.data}
          a={aDevice}
          b={bDevice}
          exporter={exporter}
        />
      )}
    </>
  );
}

/** What stands in the way of a side: it is being opened, or cannot be. */
function Way({
  of,
  name,
  byteUnit,
}: {
  readonly of: FollowedHistory;
  readonly name: string;
  readonly byteUnit: ViewProps["byteUnit"];
}) {
  const { answer, error } = of;
  if (answer === null) {
    return error === null ? null : <Failure failure={error} note={`Side ${name}.`} />;
  }
  if (answer.state === "failed")
    return <OpeningFailed answer={answer} again={of.again} />;
  if (answer.state === "ready") return null;
  return <Opening answer={answer} byteUnit={byteUnit} />;
}

/** Two moments set against each other: numbers, waterfall, timelines, flamegraph, table. */
function Difference(props: DifferenceProps) {
  const { view, answer } = props;
  return (
    <>
      <div class="compare-top">
        <Headline answer={answer} byteUnit={view.byteUnit} />
        <Waterfall {...props} />
      </div>
      <Overlay {...props} />
      <ChangeFlame {...props} />
      <Rows {...props} />
    </>
  );
}
