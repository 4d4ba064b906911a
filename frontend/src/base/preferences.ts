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
