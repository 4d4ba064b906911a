import type { ComponentChildren } from "preact";
import type { ProfileResponse } from "../../../api/types.gen";
import { useLive } from "../../../api/live/use_live";
import type { Live } from "../../../api/live/watch";
import { IconButton } from "../../../widgets/icon/icon";
import { Waiting } from "../../../widgets/state/state";
import { NoTraces, TraceChoice, TraceState } from "../../time/profiled/trace_choice";
import type { PartProps } from "../params";
import { useOtherRun } from "../runs/other_run";
import { ChooseRun } from "../runs/run_table";
import { SideFrame } from "../sides";
import { TraceTables } from "./tables";
import { nearest } from "../defaults";

function ready({ data }: Live<ProfileResponse>): ProfileResponse | null {
  const isOpen = data?.choice.state === "ready" && data.choice.problem === null;
  return isOpen ? data : null;
}

export function TracesPart(part: PartProps) {
  const { view, params, change } = part;
  const { client, run, pollMs } = view;
  const { rank } = view.ranks;
  const bQuery = { run: run.id, source: params.b.source, rank };
  const b = useLive(client, "profile", bQuery, pollMs);
  const bChoice = b.data?.choice ?? null;
  const other = useOtherRun(part, (bChoice?.numTraces ?? 2) > 1);
  const aRun = other.run;
  const sameRun = aRun?.id === run.id;
  const bId = bChoice?.source ?? null;
  const traces = bChoice?.traces ?? [];
  const ofB = traces.find(({ id }) => id === bId);
  // A file without a cycle may not be a profiler trace.
  const alike = traces.filter(
    ({ cycle }) => (cycle === null) === (ofB?.cycle === null),
  );
  const usual = sameRun && bId !== null ? nearest(alike, bId) : null;
  const aId = params.a.source ?? usual;
  const isKnown = aRun !== null && !(sameRun && aId === null);
  const aQuery = isKnown ? { run: aRun.id, source: aId, rank } : null;
  const a = useLive(client, "profile", aQuery, pollMs);
  if (bChoice?.numTraces === 0) return <NoTraces contents="profiles to compare" />;
  const [aReady, bReady] = [ready(a), ready(b)];
  const choose = (ofA: string | null, ofB: string | null): void =>
    change(
      { a: { ...params.a, source: ofA }, b: { ...params.b, source: ofB } },
      "push",
    );
  const aSource = a.data?.choice.source ?? null;
  return (
    <>
      <div class="row compare-traces">
        <Side
          name="A"
          live={a}
          run={other.choice}
          onSource={(source) => choose(source, params.b.source)}
        />
        <Side
          name="B"
          live={b}
          run={<b>{run.name}</b>}
          // Writes A too: its default depends on B.
          onSource={(source) => choose(aSource, source)}
        />
        {sameRun && (
          <IconButton
            label="Exchange A and B"
            icon="swap"
            onClick={() => choose(bId, aSource)}
          />
        )}
      </div>
      {other.isOpen && <ChooseRun {...part} />}
      {aRun !== null && <Way live={a} name="A" />}
      <Way live={b} name="B" />
      {aReady !== null && bReady !== null && (
        <TraceTables {...part} a={aReady} b={bReady} />
      )}
    </>
  );
}

function Side(props: {
  readonly name: "A" | "B";
  readonly live: Live<ProfileResponse>;
  readonly run: ComponentChildren;
  readonly onSource: (source: string) => void;
}) {
  const choice = props.live.data?.choice ?? null;
  return (
    <SideFrame name={props.name} run={props.run}>
      {choice?.numTraces === 0 && (
        <span class="quiet">This run has no profiler traces.</span>
      )}
      {choice !== null && choice.numTraces > 0 && (
        <TraceChoice choice={choice} onChoose={props.onSource} />
      )}
    </SideFrame>
  );
}

function Way(props: { readonly live: Live<ProfileResponse>; readonly name: string }) {
  const { data, error } = props.live;
  const note = `Side ${props.name}.`;
  return (
    <>
      {data !== null && <TraceState choice={data.choice} />}
      <Waiting error={error} note={note} hasContent={data !== null} blocksPx={[24]} />
    </>
  );
}
