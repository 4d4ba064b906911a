/**
 * Copies text. The modern interface exists only on https and localhost, but TensorBoard
 * is often reached over plain http by a cluster's host name: then the old one serves.
 */
export async function copyText(text: string): Promise<boolean> {
  if (window.isSecureContext) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      // Refused (an iframe without the permission): try the old way.
    }
  }
  return copyBySelection(text);
}

function copyBySelection(text: string): boolean {
  const before = document.activeElement;
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "off-screen";
  document.body.append(area);
  area.select();
  // Deprecated but the only way on plain http; its replacement needs https.
  const command: unknown = Reflect.get(document, "execCommand");
  const copied =
    typeof command === "function" &&
    Reflect.apply(command, document, ["copy"]) === true;
  area.remove();
  if (before instanceof HTMLElement) before.focus();
  return copied;
}
