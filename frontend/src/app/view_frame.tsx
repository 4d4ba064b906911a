/** Loads a view's code when it is first shown, and catches what it throws. */

import { Component, type ComponentChildren, type ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { ViewProps } from "../pages/shared/view_props";
import { Failure, Skeleton } from "../widgets/state/state";
import { TABS, type Tab } from "./pages";

type Loaded =
  | { readonly kind: "loading" }
  | { readonly kind: "failed"; readonly what: string }
  | { readonly kind: "ready"; readonly View: ComponentType<ViewProps> };

/** The other pages' code is fetched when this one has had its data. */
const OTHERS_DELAY_MS = 4_000;

/** So that pages also change while TensorBoard is away. */
function loadOthers(): void {
  for (const tab of TABS) {
    tab.load().catch(() => {
      // It is fetched again, and its failure told, when the page is chosen.
    });
  }
}

export function ViewFrame({
  tab,
  view,
}: {
  readonly tab: Tab;
  readonly view: ViewProps;
}) {
  const [loaded, setLoaded] = useState<Loaded>({ kind: "loading" });
  useEffect(() => {
    let wanted = true;
    tab.load().then(
      (View) => {
        if (wanted) setLoaded({ kind: "ready", View });
      },
      (error: unknown) => {
        if (wanted) setLoaded({ kind: "failed", what: messageOf(error) });
      },
    );
    return () => {
      wanted = false;
    };
  }, [tab]);
  const ready = loaded.kind === "ready";
  useEffect(() => {
    if (!ready) return undefined;
    const timer = window.setTimeout(loadOthers, OTHERS_DELAY_MS);
    return () => window.clearTimeout(timer);
  }, [ready]);
  if (loaded.kind === "loading") return <Skeleton heightPx={320} />;
  if (loaded.kind === "failed") {
    return (
      <Failure
        failure={{
          what: "This page’s code could not be loaded.",
          where: loaded.what,
          remedy:
            "TensorBoard was stopped or updated meanwhile: start it again, then reload.",
        }}
        action={
          <button type="button" class="button" onClick={() => window.location.reload()}>
            Reload
          </button>
        }
      />
    );
  }
  return (
    // A new run gets a fresh view, and a fresh chance after a failure.
    <Border key={view.run.id}>
      <loaded.View {...view} />
    </Border>
  );
}

class Border extends Component<
  { readonly children: ComponentChildren },
  { readonly what: string | null }
> {
  override state: { readonly what: string | null } = { what: null };

  static override getDerivedStateFromError(error: unknown): { readonly what: string } {
    return { what: messageOf(error) };
  }

  override render() {
    return this.state.what === null ? (
      this.props.children
    ) : (
      <Failure
        failure={{
          what: "This page failed while it was drawn.",
          where: this.state.what,
          remedy:
            "The other pages still work. Reload to try again; if it comes back, please report it with this text.",
        }}
      />
    );
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : "unknown failure";
}
