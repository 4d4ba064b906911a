/** A lost connection, told on every page. */

import type { ApiError } from "../../api/client";
import { Icon } from "../../widgets/icon/icon";

/** `error`: the newest failure to reach the server, while older content still stands. */
export function Banners({ error }: { readonly error: ApiError | null }) {
  return (
    <div class="banners">
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
