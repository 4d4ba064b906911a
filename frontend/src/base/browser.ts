type Events = WindowEventMap & DocumentEventMap;

/** Until the returned function is called. */
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

/** The clipboard API needs https or localhost; clusters often serve plain http. */
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
  // Deprecated, but the only way on plain http.
  const command: unknown = Reflect.get(document, "execCommand");
  const copied =
    typeof command === "function" &&
    Reflect.apply(command, document, ["copy"]) === true;
  area.remove();
  if (before instanceof HTMLElement) before.focus();
  return copied;
}

/** Choices that outlive the page but do not belong in a link. */
const PREFIX = "memboard.";

/** null: nothing stored, or the browser stores nothing for us. */
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
