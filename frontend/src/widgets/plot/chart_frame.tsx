import type { ReadonlySignal } from "@preact/signals";
import type { ComponentChildren, Ref } from "preact";
import { useId } from "preact/hooks";
import type { Table } from "../../model/table";
import { dataMarkdown, DataTable } from "../export/data_table";
import { ExportMenu, type ExportShell } from "../export/export_menu";
import type { ExportSource } from "../export/source";
import { CopyMarkdownButton, IconButton } from "../icon/icon";
import "./plot.css";

export interface ChartFrameProps {
  /** Class of the figure; the plot has `${kind}-plot`. */
  readonly kind: string;
  readonly label: string;
  readonly title?: ComponentChildren;
  readonly subject: string;
  readonly source: ExportSource;
  readonly shell?: ExportShell | undefined;
  /** -1 zooms in, +1 out. */
  readonly zoom: (sign: number) => void;
  readonly fit: () => void;
  readonly table: () => Table;
  readonly tableView?: ComponentChildren;
  readonly asTable: boolean;
  readonly onAsTable: (asTable: boolean) => void;
  readonly heightPx: number;
  /** true: the key was handled. */
  readonly onKey: (event: KeyboardEvent) => boolean;
  readonly bar?: ComponentChildren;
  readonly axisName?: string | undefined;
  /** Canvases, pointer input and tip. */
  readonly plot: ComponentChildren;
  /** As wide as the plot, also as a table. */
  readonly box: Ref<HTMLDivElement>;
  readonly plotRef?: Ref<HTMLDivElement>;
  /** Kind of drawing, in its accessible name: "Heatmap". */
  readonly drawing?: string;
  readonly children?: ComponentChildren;
  readonly legend?: ComponentChildren;
  readonly help: string;
  readonly spoken: ReadonlySignal<string>;
}

export function ChartFrame(props: ChartFrameProps) {
  const { kind, label, asTable, heightPx } = props;
  const helpId = useId();

  function onKeyDown(event: KeyboardEvent): void {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    if (!props.onKey(event)) return;
    event.preventDefault();
    event.stopPropagation();
  }

  return (
    <figure class={`chart ${kind}`}>
      <div class="chart-bar">
        <figcaption class="cut">{props.title ?? label}</figcaption>
        {props.bar}
        <ZoomButtons zoom={props.zoom} fit={props.fit} />
        <IconButton
          label={asTable ? "View as chart" : "View as table"}
          icon={asTable ? "chart" : "table"}
          onClick={() => props.onAsTable(!asTable)}
        />
        {asTable && props.tableView === undefined && (
          <CopyMarkdownButton
            subject={label}
            onClick={() =>
              props.shell?.copyMarkdown(dataMarkdown(label, props.table()))
            }
          />
        )}
        <ExportMenu subject={props.subject} source={props.source} shell={props.shell} />
        {props.axisName !== undefined && props.axisName !== "" && (
          <span class="chart-axis-name quiet small">{props.axisName}</span>
        )}
      </div>
      <div ref={props.box}>
        {asTable ? (
          (props.tableView ?? (
            <DataTable label={label} heightPx={heightPx} table={props.table()} />
          ))
        ) : (
          <div
            ref={props.plotRef ?? null}
            class={`chart-plot ${kind}-plot`}
            style={{ height: `${heightPx}px` }}
            tabIndex={0}
            role="application"
            aria-label={`${props.drawing ?? "Chart"} of ${label}`}
            aria-describedby={helpId}
            onKeyDown={onKeyDown}
          >
            {props.plot}
          </div>
        )}
      </div>
      {props.children}
      {props.legend}
      <p id={helpId} class="off-screen">
        {props.help}
      </p>
      <p class="off-screen" aria-live="polite">
        {props.spoken}
      </p>
    </figure>
  );
}

export function DrawingFailed(props: {
  readonly drawing: string;
  /** "": it did not fail. */
  readonly failure: ReadonlySignal<string>;
}) {
  if (props.failure.value === "") return null;
  return (
    <p class="chart-failure" role="alert">
      {props.drawing} could not be drawn: {props.failure}. Reload the page.
    </p>
  );
}

export function ZoomButtons(props: {
  /** -1 zooms in, +1 out. */
  readonly zoom: (sign: number) => void;
  readonly fit: () => void;
}) {
  return (
    <>
      <IconButton label="Zoom out (S)" icon="minus" onClick={() => props.zoom(1)} />
      <IconButton label="Zoom in (W)" icon="plus" onClick={() => props.zoom(-1)} />
      <IconButton label="Show everything (F)" icon="fit" onClick={props.fit} />
    </>
  );
}

export function ChartSwitch(props: {
  readonly hint: string;
  readonly onClick: () => void;
  readonly children: ComponentChildren;
}) {
  return (
    <button
      type="button"
      class="text-button small on-hover"
      title={props.hint}
      onClick={props.onClick}
    >
      {props.children}
    </button>
  );
}
