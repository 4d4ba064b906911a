/** What must be said on every page: simulated data, a lost connection, a wrong rank. */

import type { ApiError } from "../api/client";
import type { RunSummary } from "../api/types.gen";
import { Icon } from "../widgets/icon/icon";

export interface BannersProps {
  readonly run: RunSummary | null;
  /** The newest failure to reach the server, while older content still stands. */
  readonly error: ApiError | null;
  /** A chosen rank that the run does not have. */
  readonly missingRank: number | null;
  readonly chooseRank: (rank: number | null) => void;
}

export function Banners({ run, error, missingRank, chooseRank }: BannersProps) {
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
      {missingRank !== null && (
        <p class="banner problem" role="alert">
          <Icon name="warning" />
          <strong>Rank {missingRank} is not in this run.</strong>
          <button
            type="button"
            class="button"
            onClick={() => {
              chooseRank(null);
            }}
          >
            Show all ranks
          </button>
        </p>
      )}
    </div>
  );
}
