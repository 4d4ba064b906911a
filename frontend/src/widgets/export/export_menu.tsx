/** The export button of a chart: CSV, JSON, PNG and SVG of what is shown. */

import { useEffect, useRef, useState } from "preact/hooks";
import type { Table } from "../../model/table";
import { toCsv, toJson } from "./csv";
import { downloadBlob, downloadText, pngOf } from "./download";
import "./export.css";

export interface Figure {
  readonly svg: string;
  readonly widthPx: number;
  readonly heightPx: number;
}

export interface ExportSource {
  /** Name of the files, without extension. */
  readonly stem: string;
  readonly table: () => Table;
  /** Facts that stand beside the columns in JSON. */
  readonly about: () => Readonly<Record<string, unknown>>;
  /** null where there is nothing to draw, as for tables. */
  readonly figure: (() => Figure) | null;
}

type Format = "csv" | "json" | "png" | "svg";

const LABELS: Readonly<Record<Format, string>> = {
  csv: "CSV (data shown)",
  json: "JSON (data shown)",
  png: "PNG picture",
  svg: "SVG picture",
};

/** Twice the screen's size: sharp on paper and on dense screens. */
const PNG_SCALE = 2;

export async function exportAs(format: Format, source: ExportSource): Promise<void> {
  if (format === "csv") {
    downloadText(source.stem, "csv", toCsv(source.table()));
  } else if (format === "json") {
    downloadText(source.stem, "json", toJson(source.table(), source.about()));
  } else if (source.figure !== null) {
    const { svg, widthPx, heightPx } = source.figure();
    if (format === "svg") downloadText(source.stem, "svg", svg);
    else {
      const png = await pngOf(svg, widthPx, heightPx, PNG_SCALE);
      downloadBlob(source.stem, "png", png);
    }
  }
}

export function ExportMenu({ source }: { readonly source: ExportSource }) {
  const [open, setOpen] = useState(false);
  const [failure, setFailure] = useState<string | null>(null);
  const root = useRef<HTMLDivElement>(null);

  useEffect(() => {
    if (!open) return;
    root.current?.querySelector<HTMLElement>("[role=menuitem]")?.focus();
    const onDown = (event: PointerEvent): void => {
      const inside =
        event.target instanceof Node && root.current?.contains(event.target);
      if (inside !== true) setOpen(false);
    };
    document.addEventListener("pointerdown", onDown);
    return () => {
      document.removeEventListener("pointerdown", onDown);
    };
  }, [open]);

  const formats: readonly Format[] =
    source.figure === null ? ["csv", "json"] : ["csv", "json", "png", "svg"];

  function choose(format: Format): void {
    setOpen(false);
    setFailure(null);
    exportAs(format, source).catch((error: unknown) => {
      setFailure(`Export failed: ${String(error)}`);
    });
  }

  function onKey(event: KeyboardEvent): void {
    if (!open) return;
    if (event.key === "Escape") {
      setOpen(false);
      root.current?.querySelector("button")?.focus();
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      const items = [
        ...(root.current?.querySelectorAll<HTMLElement>("[role=menuitem]") ?? []),
      ];
      const at = items.findIndex((item) => item === document.activeElement);
      const next = at + (event.key === "ArrowDown" ? 1 : -1);
      items[(next + items.length) % items.length]?.focus();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  return (
    <div class="export-menu" ref={root} onKeyDown={onKey}>
      <button
        type="button"
        class="icon-button"
        title="Export what is shown"
        aria-label="Export what is shown"
        aria-haspopup="menu"
        aria-expanded={open}
        onClick={() => {
          setOpen(!open);
        }}
      >
        <svg viewBox="0 0 16 16" aria-hidden="true">
          <path d="M8 2v8M4.5 7 8 10.5 11.5 7M2.5 13.5h11" />
        </svg>
      </button>
      {open && (
        <div role="menu" class="export-items" aria-label="Export">
          {formats.map((format) => (
            <button
              key={format}
              type="button"
              role="menuitem"
              onClick={() => {
                choose(format);
              }}
            >
              {LABELS[format]}
            </button>
          ))}
        </div>
      )}
      {failure !== null && (
        <span role="alert" class="export-failure">
          {failure}
        </span>
      )}
    </div>
  );
}
