/** What the drawers of slices and instants have in common: facts, arguments, ways on. */

import type { ComponentChildren } from "preact";
import type { TraceArg, TracePartner } from "../../../../api/types.gen";
import type { SliceRef } from "../state/params";
import { formatNs } from "../words";

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
