/** Only this file and `pages/shared/panels/source_frame.tsx` touch `parent`. */

import { readHash, samePlace, START, writeHash, type Place } from "./location";
import { listen } from "../base/browser";
import type { Theme } from "../base/tokens";

export interface HostPage {
  readonly place: () => Place;
  /** "push" adds a step for the back button. */
  readonly show: (place: Place, how: "replace" | "push") => void;
  readonly link: (place: Place) => string;
  readonly onPlace: (callback: (place: Place) => void) => () => void;
  /** Unless the user types elsewhere on TensorBoard's page. */
  readonly takeFocus: () => void;
  readonly theme: () => Theme;
  readonly onTheme: (callback: () => void) => () => void;
}

/** TensorBoard's window, or ours where we may not touch it. */
function outerWindow(): { readonly outer: Window; readonly embedded: boolean } {
  try {
    const outer = window.parent;
    // Reading the address throws where the parent is of another origin.
    const embedded = outer !== window && outer.location.href !== "";
    return embedded ? { outer, embedded } : { outer: window, embedded: false };
  } catch {
    return { outer: window, embedded: false };
  }
}

export function findHostPage(): HostPage {
  const { outer, embedded } = outerWindow();
  let last = readHash(outer.location.hash, embedded) ?? START;
  const address = (place: Place): string => {
    const url = new URL(outer.location.href);
    url.hash = writeHash(url.hash, place, embedded);
    return url.href;
  };
  return {
    place: () => last,
    show: (place, how) => {
      last = place;
      // While another tab of TensorBoard is shown the address is not ours to write.
      if (readHash(outer.location.hash, embedded) === null) return;
      const url = address(place);
      if (url === outer.location.href) return;
      try {
        if (how === "push") outer.history.pushState(outer.history.state, "", url);
        else outer.history.replaceState(outer.history.state, "", url);
      } catch {
        // Safari refuses the 101st change within 30 s: the next one catches up.
      }
    },
    link: address,
    onPlace: (callback) => {
      const changed = (): void => {
        const place = readHash(outer.location.hash, embedded);
        if (place === null || samePlace(place, last)) return;
        last = place;
        callback(place);
      };
      return listen(outer, ["hashchange", "popstate"], changed);
    },
    takeFocus: () => {
      const active = embedded ? outer.document.activeElement : null;
      if (active === null || !isTyping(active)) window.focus();
    },
    ...(embedded ? themeAround(outer.document.body) : themeOfSystem()),
  };
}

/** The element may be of TensorBoard's document. */
export function isTyping(target: EventTarget | null): boolean {
  // Another document's elements are no instances of this one's classes.
  if (target === null || !("tagName" in target)) return false;
  const editable = "isContentEditable" in target && target.isContentEditable === true;
  return editable || /^(INPUT|SELECT|TEXTAREA)$/.test(String(target.tagName));
}

type HostTheme = Pick<HostPage, "theme" | "onTheme">;

function themeOfSystem(): HostTheme {
  const query = window.matchMedia("(prefers-color-scheme: dark)");
  return {
    theme: () => (query.matches ? "dark" : "light"),
    onTheme: (callback) => listen(query, ["change"], callback),
  };
}

function themeAround(body: HTMLElement): HostTheme {
  return {
    theme: () => (body.classList.contains("dark-mode") ? "dark" : "light"),
    onTheme: (callback) => {
      const observer = new MutationObserver(callback);
      observer.observe(body, { attributes: true, attributeFilter: ["class"] });
      return () => observer.disconnect();
    },
  };
}
