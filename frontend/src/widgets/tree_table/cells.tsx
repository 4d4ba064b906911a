/** Cells and headings of the tree table as elements. */

import { render } from "preact";
import type { TreeRow } from "../../model/tree";
import { Icon } from "../icon/icon";
import { span } from "../tabulator/elements";
import type { Cell, TreeColumn, TreeSort } from "./types";

const INDENT_PX = 14;

function textOf(cell: Cell): readonly HTMLElement[] {
  const main = span(cell.text, cell.title, `cell-text ${toneClass(cell)}`);
  if (cell.note === undefined || cell.note === "") return [main];
  return [main, span(cell.note, undefined, "cell-note")];
}

function toneClass({ tone }: Cell): string {
  return tone === undefined ? "" : `is-${tone}`;
}

export function numberCell(cell: Cell): HTMLElement {
  const element = document.createElement("span");
  element.className = "cell-number";
  element.append(...textOf(cell));
  const { bar } = cell;
  if (bar !== undefined && bar.to > bar.from) {
    const drawn = document.createElement("span");
    drawn.className = "cell-bar";
    drawn.style.left = `${bar.from * 100}%`;
    drawn.style.width = `${(bar.to - bar.from) * 100}%`;
    drawn.style.background = bar.colour;
    element.append(drawn);
  }
  return element;
}

export function treeCell(
  row: TreeRow,
  cell: Cell,
  hasToggles: boolean,
  onToggle: (id: number) => void,
): HTMLElement {
  const element = document.createElement("span");
  element.className = "cell-tree";
  element.style.paddingLeft = `${row.depth * INDENT_PX}px`;
  if (!hasToggles) {
    element.append(...textOf(cell));
    return element;
  }
  const toggle = document.createElement("button");
  toggle.type = "button";
  toggle.className = "cell-toggle";
  // The arrow keys do the same; thousands of stops would help nobody.
  toggle.tabIndex = -1;
  if (row.numChildren > 0) {
    toggle.setAttribute("aria-label", row.expanded ? "Collapse" : "Expand");
    toggle.classList.toggle("is-open", row.expanded);
    render(<Icon name="right" sizePx={12} />, toggle);
    toggle.addEventListener("click", (event) => {
      event.stopPropagation();
      onToggle(row.id);
    });
  } else {
    toggle.disabled = true;
    toggle.setAttribute("aria-hidden", "true");
  }
  element.append(toggle, ...textOf(cell));
  return element;
}

export function heading(column: TreeColumn, sort: TreeSort | null): HTMLElement {
  const element = document.createElement("span");
  element.className = "column-title";
  element.title = column.hint ?? column.title;
  if (column.swatch !== undefined) {
    const swatch = document.createElement("span");
    swatch.className = "column-swatch";
    swatch.style.background = column.swatch;
    element.append(swatch);
  }
  element.append(span(column.title));
  if (sort?.key === column.key) {
    element.append(span(sort.descending ? "▼" : "▲", undefined, "column-sorted"));
  }
  return element;
}
