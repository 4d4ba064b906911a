/** Attempts and the facts of the run's headers. */

import type { Attempt, RunFact } from "../../api/types.gen";
import { formatInteger } from "../../base/bytes";
import { formatInstant, formatSeconds } from "../../base/durations";
import { Status, type StatusLook } from "../../widgets/status/status";

const ENDINGS: Readonly<Record<Attempt["ended"], StatusLook>> = {
  closed: { word: "Closed", icon: "check", tone: "ok" },
  running: { word: "Running", icon: "check", tone: "ok" },
  exception: { word: "Exception", icon: "cross", tone: "bad" },
  signal: { word: "By a signal", icon: "warning", tone: "warn" },
  lost: { word: "Lost", icon: "warning", tone: "bad" },
};

const OVERLAP: StatusLook = {
  word: "overlaps the attempt before: two jobs wrote into this run",
  icon: "warning",
  tone: "warn",
};

export function Attempts({ attempts }: { readonly attempts: readonly Attempt[] }) {
  return (
    <section class="panel" aria-labelledby="attempts-title">
      <header class="panel-head">
        <h2 id="attempts-title">Attempts</h2>
      </header>
      <div class="table-scroll">
        <table class="data-table">
          <thead>
            <tr>
              <th scope="col" class="num">
                #
              </th>
              <th scope="col">Started</th>
              <th scope="col">Lasted</th>
              <th scope="col">Steps</th>
              <th scope="col" class="num">
                Ranks
              </th>
              <th scope="col">Ended</th>
            </tr>
          </thead>
          <tbody>
            {attempts.map((attempt) => (
              <AttemptRow key={attempt.index} attempt={attempt} />
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function AttemptRow({ attempt }: { readonly attempt: Attempt }) {
  const ending = ENDINGS[attempt.ended];
  const { firstStep, lastStep, endedMs, startedMs } = attempt;
  const steps =
    firstStep === null || lastStep === null
      ? "–"
      : `${formatInteger(firstStep)}–${formatInteger(lastStep)}`;
  return (
    <tr>
      <td class="num">{attempt.index}</td>
      <td class="nowrap">{formatInstant(startedMs)}</td>
      <td class="nowrap">
        {endedMs === null ? "–" : formatSeconds((endedMs - startedMs) / 1000)}
      </td>
      <td class="nowrap">{steps}</td>
      <td class="num">{formatInteger(attempt.numRanks)}</td>
      <td>
        <Status look={ending} />
        {attempt.overlapsPrevious && <Status look={OVERLAP} />}
      </td>
    </tr>
  );
}

const FACTS: Readonly<Record<RunFact["key"], string>> = {
  device_name: "Device",
  torch_version: "PyTorch",
  driver_version: "Driver",
  hosts: "Hosts",
  local_rank: "Local rank",
  mesh: "Device mesh",
  allocator_settings: "Allocator settings",
  memboard_version: "Recorded by MemBoard",
  python_version: "Python",
  dropped_rows: "Dropped rows",
};

/** Words that differ where the facts are one rank's. */
const RANK_FACTS: Partial<typeof FACTS> = {
  hosts: "Host",
  mesh: "Place in the device mesh",
};

export function Facts(props: {
  readonly facts: readonly RunFact[];
  readonly rank: number | null;
}) {
  const { facts, rank } = props;
  const words = rank === null ? FACTS : { ...FACTS, ...RANK_FACTS };
  return (
    <section class="panel" aria-labelledby="facts-title">
      <header class="panel-head">
        <h2 id="facts-title">{rank === null ? "Run" : `Rank ${rank}`}</h2>
      </header>
      <dl class="facts">
        {facts.map((fact) => (
          <div key={fact.key}>
            <dt>{words[fact.key]}</dt>
            <dd>{fact.value}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
