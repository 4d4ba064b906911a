import type { SourceStatus } from "../../../api/types.gen";
import { asSentence, sourceLabel } from "../../../model/words/source_label";
import { Nothing } from "../../../widgets/state/state";

export function NotCollected(props: {
  readonly title: string;
  readonly absent: readonly SourceStatus[];
  readonly snippet: string;
  readonly note: string;
}) {
  // Where a recording tried and could not, no setting helps: the remedy says what does.
  const mayBeSwitchedOn =
    props.absent.length === 0 || props.absent.some((source) => source.status === "off");
  return (
    <Nothing title={props.title}>
      {props.absent.map(({ source, reason, remedy, cost }) => (
        <p key={`${source} ${reason}`}>
          {sourceLabel(source)}: {reason === "" ? "not recorded." : asSentence(reason)}{" "}
          {remedy !== "" && asSentence(remedy)} {cost !== "" && `Cost: ${cost}.`}
        </p>
      ))}
      {mayBeSwitchedOn && (
        <>
          <p>To record it:</p>
          <pre class="snippet" tabIndex={0}>
            {props.snippet}
          </pre>
          <p>{props.note}</p>
        </>
      )}
    </Nothing>
  );
}
