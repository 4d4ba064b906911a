/** Where a page has nothing: why, which option records it, and what that costs. */

import type { Recorded } from "../api/types.gen";
import { asSentence, sourceLabel } from "../model/source_label";
import { Nothing } from "../widgets/state/state";

export function NotCollected(props: {
  readonly title: string;
  readonly absent: readonly Recorded[];
  /** How to turn it on. */
  readonly snippet: string;
  readonly cost: string;
}) {
  return (
    <Nothing title={props.title}>
      {props.absent.map(({ source, reason, remedy }) => (
        <p key={`${source} ${reason}`}>
          {sourceLabel(source)}: {reason === "" ? "not recorded." : asSentence(reason)}{" "}
          {remedy !== "" && <span class="quiet">{asSentence(remedy)}</span>}
        </p>
      ))}
      <p>To record it:</p>
      <pre class="not-collected-snippet" tabIndex={0}>
        {props.snippet}
      </pre>
      <p class="quiet">{props.cost}</p>
    </Nothing>
  );
}
