/** The page's first lines: what takes most, what belongs to modules, and what to know. */

import type { ModuleFacts, ModulesResponse, ModuleState } from "../../../api/types.gen";
import { formatBytesExact, formatInteger, type ByteUnit } from "../../../base/bytes";
import { formatSeconds } from "../../../base/durations";
import { categoryLabel, categoryNoun } from "../../../model/category";
import { formatQuantity } from "../../../model/words/quantity";
import { asSentence } from "../../../model/words/source_label";
import { Icon } from "../../../widgets/icon/icon";
import type { Modules } from "./rows";
import { baselineWords, callWords, STATE_WORDS } from "./words";

const AT: Partial<Record<ModuleState, string>> = {
  window_start: "at the start of",
  before_optimizer: "before the optimizer in",
  after_optimizer: "after the optimizer in",
  window_end: "at the end of",
};

/** ` peak, step 100, rank 41`; behind how much it was. */
export function momentWords(data: ModulesResponse): string {
  const rank = `rank ${data.rank ?? 0}`;
  const at = AT[data.state];
  return at === undefined
    ? ` peak, ${callWords(data)}, ${rank}`
    : ` ${at} ${callWords(data)}, ${rank}`;
}

export interface LeadProps {
  readonly data: ModulesResponse;
  readonly modules: Modules;
  readonly byteUnit: ByteUnit;
  readonly onModule: (fqn: string) => void;
}

/** `Activations of 40 × layers.* are 37.4 GiB of the 65.9 GiB peak, step 100, rank 41.` */
export function Lead({ data, modules, byteUnit, onModule }: LeadProps) {
  const { split } = data;
  if (split === null || data.measure === "total") {
    const what = data.measure === "held" ? "Memory of each module" : "The rank’s total";
    return (
      <p class="modules-lead">
        {what}: {STATE_WORDS[data.state]}, {callWords(data)}, rank {data.rank ?? 0}.
      </p>
    );
  }
  const size = (bytes: number) => (
    <strong title={formatBytesExact(bytes)}>
      {formatQuantity(bytes, "bytes", byteUnit)}
    </strong>
  );
  const { name, module, bytes } = split.largest;
  const id = module === null ? null : modules.idOf(module);
  return (
    <p class="modules-lead">
      {categoryNoun(name)}{" "}
      {module === null ? (
        "outside all modules"
      ) : (
        <>
          of{" "}
          <button
            type="button"
            class="text-button"
            title={`${module}: its details`}
            onClick={() => onModule(module)}
          >
            {id === null ? module : modules.label(id)}
          </button>
        </>
      )}{" "}
      are {size(bytes)} of the {size(split.totalBytes)}
      {momentWords(data)}.
    </p>
  );
}

/** Categories of the rest that are named; of more, the largest. */
const MOST_NAMED = 3;

/** `Modules hold 41.9 GiB; 24.0 GiB belong to no module (other 24.0 GiB).` */
export function splitWords(
  { split, baseline, windows }: ModulesResponse,
  byteUnit: ByteUnit,
): string {
  const size = (bytes: number) => formatQuantity(bytes, "bytes", byteUnit);
  const against =
    baseline === null
      ? ""
      : `Shown: the difference from ${baselineWords(baseline, windows)}.`;
  if (split === null) return against;
  const rest = split.unattributed.toSorted((a, b) => b.bytes - a.bytes);
  const named = rest
    .slice(0, MOST_NAMED)
    .map(({ name, bytes }) => `${categoryLabel(name).toLowerCase()} ${size(bytes)}`);
  if (rest.length > MOST_NAMED) named.push("…");
  const none =
    named.length === 0
      ? ""
      : `; ${size(split.unattributedBytes)} belong to no module (${named.join(", ")})`;
  return `Modules hold ${size(split.heldBytes)}${none}. ${against}`.trimEnd();
}

const BACKENDS: ReadonlyMap<string, string> = new Map([
  ["fsdp2", "FSDP2"],
  ["plain", "without FSDP"],
]);

const INPUTS: ReadonlyMap<string, string> = new Map([
  ["forward", "inputs from the root’s forward"],
  ["given", "inputs as given"],
  ["none", "inputs not tracked"],
]);

/** Short facts, in the order they matter; `peak`: with the step's highest total. */
export function factWords(
  facts: ModuleFacts,
  byteUnit: ByteUnit,
  peak = true,
): readonly string[] {
  const words: string[] = [];
  if (peak && facts.windowPeakBytes !== null) {
    const when =
      facts.windowPeakUs === null
        ? ""
        : ` at ${formatSeconds(facts.windowPeakUs / 1e6)}`;
    words.push(
      `peak of the step ${formatQuantity(facts.windowPeakBytes, "bytes", byteUnit)}${when}`,
    );
  }
  if (facts.root !== "") words.push(`root ${facts.root}`);
  const backend = BACKENDS.get(facts.backend) ?? facts.backend;
  if (backend !== "") words.push(backend);
  if (facts.world !== "") {
    words.push(/^\d+$/.test(facts.world) ? `world size ${facts.world}` : facts.world);
  }
  if (facts.numOptimizers !== null) {
    words.push(
      facts.numOptimizers === 1
        ? "1 optimizer"
        : `${formatInteger(facts.numOptimizers)} optimizers`,
    );
  }
  const inputs = INPUTS.get(facts.inputs) ?? facts.inputs;
  if (inputs !== "") words.push(inputs);
  if (facts.roundingBytes !== null && facts.roundingBytes > 1) {
    words.push(`sizes rounded up to ${formatInteger(facts.roundingBytes)} bytes`);
  }
  if (facts.numEvents !== null) words.push(`${formatInteger(facts.numEvents)} events`);
  if (facts.torchVersion !== "" && facts.source !== "simulated")
    words.push(`torch ${facts.torchVersion}`);
  return words;
}

export interface Caveat {
  readonly head: string;
  readonly sentences: readonly string[];
}

/** What a reader must know before trusting the numbers; empty where nothing. */
export function caveats(facts: ModuleFacts): readonly Caveat[] {
  const found: Caveat[] = [];
  if (facts.estimate !== "") {
    found.push({
      head: asSentence(facts.estimate),
      sentences: [
        "These sizes are what the model would hold without torch.compile; the compiled model may keep less, or other things.",
      ],
    });
  }
  if (facts.incomplete) {
    found.push({
      head: "Incomplete.",
      sentences: [
        "Tracking ended before the step did, by an error or because the process died. What was recorded until then is shown.",
      ],
    });
  }
  if (facts.numEventsDropped > 0) {
    found.push({
      head: `${formatInteger(facts.numEventsDropped)} events were dropped.`,
      sentences: ["Numbers after the first gap may be too high or too low."],
    });
  }
  if (facts.source === "imported") {
    found.push({
      head: "Imported report.",
      sentences: [
        "It holds states only: there is no timeline of the step, and no moments between states.",
      ],
    });
  }
  // Of a simulated run the page already says so above.
  if (facts.reasons.length > 0 && facts.source !== "simulated") {
    found.push({
      head: "Note.",
      sentences: facts.reasons.map(asSentence),
    });
  }
  return found;
}

export function Facts({
  data,
  byteUnit,
}: {
  readonly data: ModulesResponse;
  readonly byteUnit: ByteUnit;
}) {
  const { facts } = data;
  if (facts === null) return null;
  return (
    <p class="modules-facts quiet">
      {factWords(facts, byteUnit, data.state !== "window_peak").map((words) => (
        <span key={words}>{words}</span>
      ))}
    </p>
  );
}

export function Caveats({ data }: { readonly data: ModulesResponse }) {
  if (data.facts === null) return null;
  return (
    <>
      {caveats(data.facts).map(({ head, sentences }) => (
        <p key={head} class="modules-caveat">
          <Icon name="warning" />
          <span>
            <strong>{head}</strong> {sentences.join(" ")}
          </span>
        </p>
      ))}
    </>
  );
}
