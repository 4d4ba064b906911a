/** What must be said on every page: simulated data, a lost connection. */

import type { ApiError } from "../api/client";
import type { RunSummary } from "../api/types.gen";
import { Icon } from "../widgets/icon/icon";

export interface BannersProps {
  readonly run: RunSummary | null;
  /** The newest failure to reach the server, while older content still stands. */
  readonly error: ApiError | null;
}

export function Banners({ run, error }: BannersProps) {
  return (
    <div class="banners">
      {run?.simulated === true && (
        <p class="banner simulated">
          <Icon name="info" />
          <strong>Simulated data</strong>
          <span>No training produced these numbers.</span>
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
