import type { Recorded } from "../../../api/types.gen";
import { asSentence, sourceLabel } from "../../../model/words/source_label";
import { Nothing } from "../../../widgets/state/state";

export function NotCollected(props: {
  readonly title: string;
  readonly absent: readonly Recorded[];
  readonly snippet: string;
  readonly note: string;
}) {
  return (
    <Nothing title={props.title}>
      {props.absent.map(({ source, reason, remedy, cost }) => (
        <p key={`${source} ${reason}`}>
          {sourceLabel(source)}: {reason === "" ? "not recorded." : asSentence(reason)}{" "}
          {remedy !== "" && asSentence(remedy)} {cost !== "" && `Cost: ${cost}.`}
        </p>
      ))}
      <p>To record it:</p>
      <pre class="snippet" tabIndex={0}>
        {props.snippet}
      </pre>
      <p>{props.note}</p>
    </Nothing>
  );
}
