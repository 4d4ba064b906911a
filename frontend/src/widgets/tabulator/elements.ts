/** What tables made with Tabulator share: its parts, their look, keys in headers. */

import {
  FormatModule,
  FrozenColumnsModule,
  InteractionModule,
  ResizeColumnsModule,
  SortModule,
  Tabulator,
} from "tabulator-tables";
import "tabulator-tables/dist/css/tabulator_simple.min.css";
import "./tabulator.css";

// Once for all tables: a part that one of them registers changes the others too.
Tabulator.registerModule([
  FormatModule,
  FrozenColumnsModule,
  InteractionModule,
  ResizeColumnsModule,
  SortModule,
]);

/** Text goes in as text: names come from the training machines. */
export function span(text: string, title?: string, className?: string): HTMLElement {
  const element = document.createElement("span");
  element.textContent = text;
  if (title !== undefined) element.title = title;
  if (className !== undefined) element.className = className;
  return element;
}

/** Headers sort by keyboard too. */
export function makeHeadersFocusable(table: Tabulator): void {
  for (const column of table.getColumns()) {
    const header = column.getElement();
    header.tabIndex = 0;
    header.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      header.click();
    });
  }
}
