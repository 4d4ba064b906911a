/** A small SVG serialiser. Every text and attribute is escaped here and nowhere else. */

export interface SvgNode {
  readonly name: string;
  /** null leaves an attribute out. */
  readonly attributes: Readonly<Record<string, string | number | null>>;
  readonly children: readonly (SvgNode | string)[];
}

export function svg(
  name: string,
  attributes: SvgNode["attributes"],
  ...children: SvgNode["children"]
): SvgNode {
  return { name, attributes, children };
}

/** XML allows no control characters and no halves of pairs, escaped or not. */
function isAllowed(character: string): boolean {
  const code = character.codePointAt(0) ?? 0;
  if (code === 9 || code === 10 || code === 13) return true;
  const half = code >= 0xd800 && code <= 0xdfff;
  return code >= 32 && !half && code !== 0xfffe && code !== 0xffff;
}

function escaped(text: string): string {
  return Array.from(text, (c) => (isAllowed(c) ? c : "\ufffd"))
    .join("")
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}

/** Coordinates need no more than hundredths of a px. */
function attributeText(value: string | number): string {
  return typeof value === "string"
    ? escaped(value)
    : String(Math.round(value * 100) / 100);
}

function serialised(node: SvgNode | string): string {
  if (typeof node === "string") return escaped(node);
  const attributes = Object.entries(node.attributes)
    .map(([name, value]) =>
      value === null ? "" : ` ${name}="${attributeText(value)}"`,
    )
    .join("");
  const children = node.children.map(serialised).join("");
  return children === ""
    ? `<${node.name}${attributes}/>`
    : `<${node.name}${attributes}>${children}</${node.name}>`;
}

/** A whole SVG file. */
export function svgDocument(
  widthPx: number,
  heightPx: number,
  title: string,
  ...children: SvgNode["children"]
): string {
  const root = svg(
    "svg",
    {
      xmlns: "http://www.w3.org/2000/svg",
      width: widthPx,
      height: heightPx,
      viewBox: `0 0 ${widthPx} ${heightPx}`,
      "font-family": "Roboto, Helvetica, Arial, sans-serif",
      "font-size": 11,
    },
    svg("title", {}, title),
    ...children,
  );
  return `<?xml version="1.0" encoding="UTF-8"?>\n${serialised(root)}\n`;
}
