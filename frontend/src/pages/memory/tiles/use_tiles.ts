/** The tiles of the picture as a hook: what is drawn, and what is under way. */

import { signal, type ReadonlySignal } from "@preact/signals";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { ApiError, Client } from "../../../api/client";
import type { BlockTile } from "../../../widgets/block_stack/tile";
import { TileLoader } from "./loader";
import type { TileSubject } from "./wanted";

export interface Tiles {
  readonly loader: TileLoader;
  readonly tiles: readonly BlockTile[];
  readonly loading: boolean;
  readonly error: ApiError | null;
  /** Raised whenever a tile or its holders arrive. */
  readonly version: ReadonlySignal<number>;
}

export function useTiles(client: Client, subject: TileSubject): Tiles {
  const [, setVersion] = useState(0);
  const [error, setError] = useState<ApiError | null>(null);
  const version = useMemo(() => signal(0), []);
  const loader = useMemo(
    () =>
      new TileLoader(client, {
        onTiles: () => {
          version.value += 1;
          setVersion(version.value);
          setError(null);
        },
        onFailure: setError,
      }),
    [client, version],
  );
  const key = JSON.stringify(subject);
  const newest = useRef(subject);
  newest.current = subject;
  useEffect(() => loader.about(newest.current), [loader, key]);
  useEffect(() => () => loader.close(), [loader]);
  return { loader, tiles: loader.tiles, loading: loader.loading, error, version };
}
