/** What the browser does for us: events, the clipboard, choices that are kept. */

type Events = WindowEventMap & DocumentEventMap;

/** Hears events until the function returned is called. */
export function listen<K extends keyof Events>(
  target: EventTarget,
  types: readonly K[],
  heard: (event: Events[K]) => void,
): () => void {
  const abort = new AbortController();
  const { signal } = abort;
  for (const type of types) {
    target.addEventListener(type, heard as (event: Event) => void, { signal });
  }
  return () => abort.abort();
}

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

/** Choices of the user that outlive the page but do not belong into a link. */
const PREFIX = "memboard.";

/** Null where nothing was kept or the browser keeps nothing for us. */
export function readPreference(name: string): string | null {
  try {
    return window.localStorage.getItem(PREFIX + name);
  } catch {
    return null;
  }
}

export function writePreference(name: string, value: string): void {
  try {
    window.localStorage.setItem(PREFIX + name, value);
  } catch {
    // Storage is full or forbidden: the choice lasts as long as the page.
  }
}
