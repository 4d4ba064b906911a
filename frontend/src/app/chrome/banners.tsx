/** What must be said on every page: data that are not real, a lost connection. */

import type { ApiError } from "../../api/client";
import type { RunSummary } from "../../api/types.gen";
import { unrealNote } from "../../model/words/origin";
import { Icon } from "../../widgets/icon/icon";

export interface BannersProps {
  readonly run: RunSummary | null;
  /** The newest failure to reach the server, while older content still stands. */
  readonly error: ApiError | null;
}

export function Banners({ run, error }: BannersProps) {
  const note = run === null ? null : unrealNote(run);
  return (
    <div class="banners">
      {note !== null && (
        <p class="banner unreal">
          <Icon name="info" />
          <strong>{note[0]}</strong>
          <span>{note[1]}</span>
        </p>
      )}
      {error !== null && (
        <p class="banner problem" role="alert">
          <Icon name="warning" />
          <strong>{error.what}</strong>
          <span>{error.remedy} What was read before stays below.</span>
        </p>
      )}
    </div>
  );
}
