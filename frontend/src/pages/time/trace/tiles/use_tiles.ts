/** The tiles of a timeline as a hook. */

import { useSignal, type ReadonlySignal } from "@preact/signals";
import { useEffect, useMemo, useState } from "preact/hooks";
import type { ApiError, Client } from "../../../../api/client";
import type { Layout } from "../plot/layout";
import { TraceLoader, type World } from "./loader";

export interface TraceTiles {
  readonly loader: TraceLoader;
  readonly version: ReadonlySignal<number>;
  readonly error: ApiError | null;
}

/** `stamp` names what the tiles are of: another one throws them away. */
export function useTraceTiles(
  client: Client,
  run: string,
  world: World,
  layout: Layout,
  stamp: string,
): TraceTiles {
  const version = useSignal(0);
  const [error, setError] = useState<ApiError | null>(null);
  const loader = useMemo(
    () =>
      new TraceLoader(client, run, {
        onTiles: () => {
          version.value += 1;
        },
        onFailure: setError,
      }),
    [client, run, version],
  );
  useEffect(() => loader.about(world, layout, stamp), [loader, world, layout, stamp]);
  useEffect(() => () => loader.close(), [loader]);
  return { loader, version, error };
}
