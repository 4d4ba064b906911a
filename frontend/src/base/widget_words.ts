/**
 * What was changed at one chart or table of a page, in the URL: a word for each kind of
 * change, with the widgets that differ from their default: `hidden=allocated-peak:4,7`.
 */

import { createContext } from "preact";
import { useContext, useState } from "preact/hooks";

export interface PageAddress {
  readonly params: ReadonlyMap<string, string>;
  readonly setParams: (changes: Readonly<Record<string, string | null>>) => void;
}

/** null: a widget without a page keeps its changes to itself. */
export const PageAddress = createContext<PageAddress | null>(null);

type Texts = readonly string[];

const NONE: Texts = [];

/** The texts of a widget under a word; none: it is as usual. */
export function useWidgetTexts(
  word: string,
  widget: string,
): readonly [Texts, (texts: Texts) => void] {
  const address = useContext(PageAddress);
  const [own, setOwn] = useState(NONE);
  if (address === null) return [own, setOwn];
  const key = slug(widget);
  const byWidget = readWidgets(address.params.get(word) ?? "");
  return [
    byWidget.get(key) ?? NONE,
    (texts) => {
      const next = new Map(byWidget);
      if (texts.length === 0) next.delete(key);
      else next.set(key, texts);
      address.setParams({ [word]: writeWidgets(next) });
    },
  ];
}

export function useWidgetFlag(
  word: string,
  widget: string,
): readonly [boolean, (isSet: boolean) => void] {
  const [texts, setTexts] = useWidgetTexts(word, widget);
  return [texts.length > 0, (isSet) => setTexts(isSet ? ["1"] : NONE)];
}

export function readWidgets(text: string): ReadonlyMap<string, Texts> {
  const byWidget = new Map<string, Texts>();
  for (const part of text.split(";")) {
    const [key = "", texts = ""] = part.split(":");
    if (key !== "" && texts !== "") byWidget.set(key, texts.split(",").map(decoded));
  }
  return byWidget;
}

export function writeWidgets(byWidget: ReadonlyMap<string, Texts>): string | null {
  const parts = Array.from(
    byWidget,
    ([key, texts]) => `${key}:${texts.map(encoded).join(",")}`,
  );
  return parts.length === 0 ? null : parts.sort().join(";");
}

function slug(widget: string): string {
  return widget.toLowerCase().replace(/[^a-z0-9]+/g, "-");
}

/** `~` is the escape: a URL encodes "%" once more. */
function encoded(text: string): string {
  return text.replace(/[~,;:]/g, (sign) => `~${sign.charCodeAt(0).toString(16)}`);
}

function decoded(text: string): string {
  return text.replace(/~([0-9a-f]{2})/g, (_, code: string) =>
    String.fromCharCode(Number.parseInt(code, 16)),
  );
}
