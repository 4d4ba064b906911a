/**
 * The module TensorBoard imports into the plugin's iframe. The page it was imported into
 * allows inline styles and eval; ours, one file further, allows neither.
 */

/** TensorBoard calls this once, when the tab is opened for the first time. */
export function render(): void {
  // TensorBoard sets <base> to the plugin's folder, under any path prefix.
  window.location.replace(new URL("app.html", document.baseURI).href);
}
