/** The allocator's state at a moment as a hook. */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { ApiError, Client, Query } from "../../api/client";
import type { SegmentsResponse } from "../../api/types.gen";
import { StateLoader } from "./states";

export interface States {
  readonly loader: StateLoader;
  /** The newest; of an earlier moment while the wanted one is on its way. */
  readonly state: SegmentsResponse | null;
  readonly error: ApiError | null;
}

/** `place`: run, history, device, filters and order. */
export function useStates(client: Client, place: Query, moment: number | null): States {
  const [state, setState] = useState<SegmentsResponse | null>(null);
  const [error, setError] = useState<ApiError | null>(null);
  const loader = useMemo(
    () => new StateLoader(client, { onState: setState, onFailure: setError }),
    [client],
  );
  const key = JSON.stringify(place);
  const newest = useRef(place);
  newest.current = place;
  useEffect(() => {
    loader.about(newest.current);
    loader.show(moment);
  }, [loader, key, moment]);
  useEffect(() => () => loader.close(), [loader]);
  return { loader, state, error };
}
