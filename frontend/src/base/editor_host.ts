/**
 * VS Code shows TensorBoard in a web view of its own, which opens files for the pages in
 * it. Beside `app/host_page.ts` the only file that touches `parent`.
 */

import type { EditorMessage } from "./source_link";

const WEB_VIEW = /^vscode-webview:|^https:\/\/[^/]*\.vscode-(?:cdn|webview)\.net$/;

/** Origins of the pages around ours, the nearest first; empty where they are not told. */
function originsAround(): readonly string[] {
  const { ancestorOrigins } = window.location as { ancestorOrigins?: DOMStringList };
  return ancestorOrigins === undefined ? [] : Array.from(ancestorOrigins);
}

/** Whether the page stands in VS Code: our frame, TensorBoard's, then the web view. */
export function isInEditor(): boolean {
  return (
    window.parent.parent !== window.parent &&
    originsAround().some((origin) => WEB_VIEW.test(origin))
  );
}

/** Asks VS Code to show a line. Only its own page gets to know the path. */
export function openInEditor(message: EditorMessage): void {
  const around = originsAround()[1];
  // A page without an origin of its own can be named by no other word.
  const target = around === undefined || around === "null" ? "*" : around;
  window.parent.parent.postMessage(message, target);
}
