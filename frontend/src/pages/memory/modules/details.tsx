import { useMemo } from "preact/hooks";
import type { ModuleResponse, ModulesResponse } from "../../../api/types.gen";
import { useLive } from "../../../api/live/use_live";
import { counted, formatInteger } from "../../../base/bytes";
import { formatExact, formatQuantity } from "../../../model/words/quantity";
import { Waiting } from "../../../widgets/state/state";
import { TextButton } from "../../shared/controls/choices";
import { AnswerTable } from "../../shared/table/answer_table";
import { columnOf, numbersOf } from "../../shared/table/columns";
import { CloseDetails } from "../../shared/panels/drawer";
import { callLines, OverCallsChart, OverRanks } from "../../shared/panels/over_calls";
import { stateWords, subjectOf, type ModulesPage } from "./params";

const PART_PX = 168;

interface DetailsProps extends ModulesPage {
  readonly data: ModulesResponse;
  readonly fqn: string;
  /** Index of the call in the table; -1: none. */
  readonly callShown: number;
}

export function Details(props: DetailsProps) {
  const { view, data, fqn, setState } = props;
  const { state, call } = data;
  const query = { ...subjectOf(data), module: fqn, state, call };
  const live = useLive(view.client, "module", query, view.pollMs);
  const answer = live.data?.module === fqn ? live.data : null;
  return (
    <aside class="inspector" aria-label={`Details of ${fqn}`}>
      <header class="panel-head">
        <h2 title={fqn}>{fqn}</h2>
        <CloseDetails close={() => setState({ module: null })} />
      </header>
      <Waiting error={live.error} hasContent={answer !== null} blocksPx={[PART_PX]} />
      {answer !== null && <Parts {...props} answer={answer} />}
    </aside>
  );
}

function Parts(props: DetailsProps & { readonly answer: ModuleResponse }) {
  const { view, data, answer } = props;
  const { overWindows, overRanks, type, isFsdp, paramBytes, bufferBytes } = answer;
  const isOwn = data.measure === "held";
  const size = (bytes: number | null | undefined): string =>
    formatQuantity(bytes ?? NaN, "bytes", view.byteUnit);
  const factOf = (name: string, bytes = NaN) =>
    [name, size(bytes), formatExact(bytes, "bytes")] as const;
  const facts = [
    type,
    isFsdp ? "FSDP module" : "",
    paramBytes ? `own params ${size(paramBytes)}` : "",
    bufferBytes ? `own buffers ${size(bufferBytes)}` : "",
  ];
  const over = useMemo(
    () =>
      callLines(overWindows.step, overWindows.timeMs, [
        ["Rank total", overWindows.totalBytes],
        ["This module", overWindows.heldBytes],
      ]),
    [overWindows],
  );
  const num = overWindows.windows.length;
  return (
    <>
      <p class="quiet">
        {facts.filter(Boolean).join(" · ")}{" "}
        <TextButton
          title="The blocks at the pinned moment, or the peak, by the module that made them"
          press={() => view.showPage("blocks", { colour: "module" })}
        >
          Show in Blocks
        </TextButton>
      </p>
      <Moments {...props} />
      <OverCallsChart
        view={view}
        over={over}
        label={`${answer.module}, ${stateWords(data, answer.state)}`}
        title={counted(num, "tracked step")}
        unit="bytes"
        fromZero
        heightPx={PART_PX - 32}
      />
      {num < 2 && (
        <p class="quiet">
          Only this step was tracked on this rank. Raise <code>schedule.active</code>,
          or let the schedule repeat, to see how the module changes.
        </p>
      )}
      {num > 1 && num < overWindows.ofWindows && (
        <p class="quiet">
          The newest {formatInteger(num)} of {formatInteger(overWindows.ofWindows)}.
        </p>
      )}
      <OverRanks
        view={view}
        label={`${answer.module} by rank`}
        title={`${isOwn ? "This module" : "Rank total"} over`}
        rank={overRanks.rank}
        bytes={isOwn ? overRanks.heldBytes : overRanks.totalBytes}
        ofRanks={overRanks.ofRanks}
        facts={(i) => [
          factOf("Rank total", overRanks.totalBytes[i]),
          factOf("This module", overRanks.heldBytes[i]),
        ]}
        heightPx={PART_PX - 8}
      />
      {overRanks.rank.length < 2 && (
        <p class="quiet">Only this rank tracked this step.</p>
      )}
    </>
  );
}

function Moments(props: DetailsProps & { readonly answer: ModuleResponse }) {
  const { view, answer, setState, callShown } = props;
  const { moments } = answer;
  const states = columnOf(moments, "state_name")?.texts ?? [];
  const calls = numbersOf(moments, "call");
  if (states.length === 0) {
    return (
      <p class="quiet">
        It does not run by itself in this step: the modules below it do.
      </p>
    );
  }
  const selected = states.findIndex(
    (state, i) => state === answer.state && calls[i] === callShown,
  );
  return (
    <AnswerTable
      view={view}
      table={moments}
      selected={selected < 0 ? null : selected}
      onSelect={(i) => {
        const call = calls[i] ?? 0;
        setState({ state: states[i] ?? null, call: call === 0 ? null : call }, "push");
      }}
      about={{ module: answer.module, window: answer.window, rank: answer.rank }}
      heightPx={PART_PX}
      steady
    />
  );
}
