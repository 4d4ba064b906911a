import { Component, type ComponentChildren, type ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { ViewProps } from "../pages/shared/view_props";
import { PageAddress } from "../base/widget_words";
import { Failure, Skeleton } from "../widgets/state/state";
import { preload, TABS, type Tab } from "./pages";

type PageModule =
  { readonly View: ComponentType<ViewProps> } | { readonly failed: string } | null;

/** The other pages' code is fetched after this one's data. */
const OTHERS_DELAY_MS = 4_000;

export function ViewFrame(props: { readonly tab: Tab; readonly view: ViewProps }) {
  const { tab, view } = props;
  const [loaded, setLoaded] = useState<PageModule>(null);
  useEffect(() => {
    let timer = 0;
    let wanted = true;
    const show = (next: PageModule): void => {
      if (wanted) setLoaded(next);
    };
    tab.load().then(
      (View) => {
        show({ View });
        // So that pages also change while TensorBoard is away.
        timer = window.setTimeout(() => TABS.forEach(preload), OTHERS_DELAY_MS);
      },
      (error: unknown) => show({ failed: messageOf(error) }),
    );
    return () => {
      wanted = false;
      window.clearTimeout(timer);
    };
  }, [tab]);
  if (loaded === null) return <Skeleton heightPx={320} />;
  if ("failed" in loaded) {
    return (
      <Failure
        failure={{
          message: "This page’s code could not be loaded.",
          where: loaded.failed,
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
      <PageAddress.Provider value={view}>
        <loaded.View {...view} />
      </PageAddress.Provider>
    </Border>
  );
}

class Border extends Component<
  { readonly children: ComponentChildren },
  { readonly failureText: string | null }
> {
  override state: { readonly failureText: string | null } = { failureText: null };

  static override getDerivedStateFromError(error: unknown): {
    readonly failureText: string;
  } {
    return { failureText: messageOf(error) };
  }

  override render() {
    const { failureText } = this.state;
    if (failureText === null) return this.props.children;
    return (
      <Failure
        failure={{
          message: "This page failed while it was drawn.",
          where: failureText,
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
