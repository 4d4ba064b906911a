import type { Client } from "../api/client";
import { counted } from "../base/bytes";
import { Icon } from "../widgets/icon/icon";
import { Failure, Nothing, Skeleton } from "../widgets/state/state";
import { Empty } from "./chrome/empty";
import { Help, Palette } from "./chrome/overlays";
import { Rail } from "./chrome/rail";
import { TopStrip } from "./chrome/top_strip";
import { DropTarget } from "./drop/drop";
import type { HostPage } from "./host_page";
import { START } from "./location";
import { useShell, type Shell } from "./shell/shell";
import { ViewFrame } from "./view_frame";

export function App(props: { readonly client: Client; readonly host: HostPage }) {
  const shell = useShell(props.client, props.host);
  const { address, openRun, look, overlays, commands, message } = shell;
  const { runs } = openRun;
  const close = (): void => overlays.setOverlay(null);
  return (
    <div class={look.rail === "shown" ? "shell" : "shell rail-hidden"}>
      <a class="skip-link" href="#content" onClick={skipToContent}>
        Skip to the content
      </a>
      <Rail address={address} openRun={openRun} pages={shell.pages} />
      <div class="stage">
        <TopStrip {...shell} />
        {runs.data !== null && runs.error !== null && (
          <p class="banner row" role="alert">
            <Icon name="warning" />
            <strong>{runs.error.message}</strong>
            <span>{runs.error.remedy} What was read before stays below.</span>
          </p>
        )}
        <div id="content" class="content" tabIndex={-1}>
          <Content {...shell} />
        </div>
      </div>
      <DropTarget
        limitBytes={runs.data?.dropLimitBytes ?? null}
        runs={runs.data?.runs ?? []}
        show={({ run, history, view }) => {
          const params = new Map(history === "" ? [] : [["history", history]]);
          address.go({ ...START, unit: address.place.unit, view, run, params });
        }}
      />
      <p class={message === "" ? "off-screen" : "toast"} role="status">
        {message}
      </p>
      {overlays.overlay === "help" && (
        <Help commands={commands.all.value} close={close} />
      )}
      {overlays.overlay === "palette" && <Palette {...shell} close={close} />}
    </div>
  );
}

function Content(props: Pick<Shell, "address" | "openRun" | "pages" | "view">) {
  const { place, go } = props.address;
  const { runs, run, strip, empty } = props.openRun;
  const { tab } = props.pages;
  if (runs.data === null) {
    return (
      <main class="view">
        {runs.error === null ? (
          <Skeleton heightPx={320} />
        ) : (
          <Failure failure={runs.error} />
        )}
      </main>
    );
  }
  if (runs.data.runs.length === 0) return <Empty runs={runs.data} />;
  if (run === null) {
    return (
      <Instead
        title="The run this link names is not in the logdir"
        text="It may have been moved, deleted, or belong to another TensorBoard."
        button="Show another run"
        press={() => go({ run: "", rank: null, ranks: "" })}
      />
    );
  }
  if (strip !== null && place.rank !== null && !strip.rank.includes(place.rank)) {
    return (
      <Instead
        title={`Rank ${place.rank} is not in this run`}
        text={`The run has ${counted(run.numRanks, "rank")} so far.`}
        button="Show all ranks"
        press={() => go({ rank: null })}
      />
    );
  }
  const absent = empty.find((emptyTab) => emptyTab.tab === tab.name);
  if (absent !== undefined) return <Instead title={absent.missing} text={absent.how} />;
  return (
    <main class="view">
      <ViewFrame key={tab.name} tab={tab} view={{ ...props.view, run }} />
    </main>
  );
}

function Instead(props: {
  readonly title: string;
  readonly text: string;
  readonly button?: string;
  readonly press?: () => void;
}) {
  return (
    <main class="view">
      <Nothing title={props.title}>
        <p>{props.text}</p>
        {props.button !== undefined && (
          <p>
            <button type="button" class="button" onClick={props.press}>
              {props.button}
            </button>
          </p>
        )}
      </Nothing>
    </main>
  );
}

/** A plain link would replace the state in the hash. */
function skipToContent(event: Event): void {
  event.preventDefault();
  document.getElementById("content")?.focus();
}
