import type { ComponentChildren } from "preact";
import { worthSaying, type ApiError } from "../../api/client";
import { Icon } from "../icon/icon";
import "./state.css";

/** Appears late, so that quick answers do not flash. */
export function Skeleton({ heightPx }: { readonly heightPx: number }) {
  return (
    <div
      class="skeleton"
      role="status"
      aria-label="Loading"
      style={{ height: `${heightPx}px` }}
    />
  );
}

export function Failure(props: {
  readonly failure: Pick<ApiError, "message" | "where" | "remedy">;
  readonly note?: string | undefined;
  readonly action?: ComponentChildren;
}) {
  const { note } = props;
  const { message, where, remedy } = props.failure;
  return (
    <div class="failure" role="alert">
      <Icon name="warning" sizePx={20} />
      <div>
        <strong>{message}</strong>
        <p>{remedy}</p>
        <p class="quiet">
          {note} {where !== "" && <code>{where}</code>}
        </p>
        {props.action}
      </div>
    </div>
  );
}

/** Blocks until an answer comes; a failure where it is worth saying. */
export function Waiting(props: {
  readonly error: ApiError | null;
  readonly hasContent: boolean;
  readonly blocksPx?: readonly number[];
  readonly note?: string;
}) {
  const { error, hasContent, blocksPx = [], note } = props;
  if (error !== null) {
    return worthSaying(error, hasContent) ? (
      <Failure failure={error} note={note} />
    ) : null;
  }
  if (hasContent) return null;
  return (
    <>
      {blocksPx.map((heightPx, index) => (
        <Skeleton key={index} heightPx={heightPx} />
      ))}
    </>
  );
}

export function Nothing({
  title,
  children,
}: {
  readonly title: string;
  readonly children?: ComponentChildren;
}) {
  return (
    <div class="nothing">
      <strong>{title}</strong>
      {children}
    </div>
  );
}
