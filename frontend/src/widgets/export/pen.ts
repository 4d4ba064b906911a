/**
 * What charts are painted with: on the page a canvas, in an exported picture the pen that
 * writes the same strokes as SVG.
 */

import { svg, type SvgNode } from "./svg";

/** The part of `CanvasRenderingContext2D` that charts use. */
export interface Pen extends Pick<
  CanvasRenderingContext2D,
  | "arc"
  | "beginPath"
  | "closePath"
  | "fillRect"
  | "fillStyle"
  | "fillText"
  | "font"
  | "globalAlpha"
  | "lineJoin"
  | "lineTo"
  | "lineWidth"
  | "moveTo"
  | "rect"
  | "restore"
  | "save"
  | "setLineDash"
  | "strokeRect"
  | "strokeStyle"
  | "strokeText"
  | "textAlign"
  | "textBaseline"
  | "translate"
> {
  readonly clip: () => void;
  readonly fill: () => void;
  readonly stroke: () => void;
  readonly measureText: (text: string) => { readonly width: number };
  /** Names what is painted next, where pictures can say it: a pointer resting on it. */
  readonly name?: (words: string) => void;
  /** In pictures: one made of pixels. */
  readonly image?: SvgPen["image"];
}

const FONT_PX = 11;
export const FONT = `${FONT_PX}px Roboto, Helvetica, Arial, sans-serif`;

/** What `save` keeps of a pen, besides where it is and what clips it. */
const LOOK = [
  ...(["fillStyle", "font", "globalAlpha", "lineJoin", "lineWidth"] as const),
  ...(["strokeStyle", "textAlign", "textBaseline"] as const),
];

interface State {
  readonly look: Readonly<Record<string, unknown>>;
  readonly dash: readonly number[];
  readonly x: number;
  readonly y: number;
  readonly clip: string | null;
}

/** About the width of a letter, where no canvas can measure text. */
const LETTER_SHARE = 0.55;
/** From the baseline down to what a text stands on otherwise, by the font's size. */
const BELOW_SHARE: Partial<Record<CanvasTextBaseline, number>> = {
  middle: 0.36,
  top: 0.8,
};
const ANCHOR: Partial<Record<CanvasTextAlign, string>> = {
  center: "middle",
  right: "end",
  end: "end",
};

function rounded(px: number): number {
  return Math.round(px * 100) / 100;
}

function colour(style: Pen["fillStyle"]): string {
  if (typeof style !== "string") throw new TypeError("pictures have plain colours");
  return style;
}

export class SvgPen implements Pen {
  fillStyle: Pen["fillStyle"] = "#000000";
  strokeStyle: Pen["strokeStyle"] = "#000000";
  font = FONT;
  globalAlpha = 1;
  lineJoin: CanvasLineJoin = "miter";
  lineWidth = 1;
  textAlign: CanvasTextAlign = "start";
  textBaseline: CanvasTextBaseline = "alphabetic";
  #dash: readonly number[] = [];
  #x = 0;
  #y = 0;
  #path = "";
  #clip: string | null = null;
  #name: string | null = null;
  readonly #saved: State[] = [];
  readonly #nodes: { readonly clip: string | null; readonly nodes: SvgNode[] }[] = [];
  /** Ids of clipping paths by what they clip to. */
  readonly #clips = new Map<string, { readonly id: string; readonly node: SvgNode }>();
  readonly #context: CanvasRenderingContext2D | null =
    typeof document === "undefined"
      ? null
      : document.createElement("canvas").getContext("2d");

  /** All that was painted. */
  nodes(): readonly SvgNode[] {
    const groups = this.#nodes.flatMap(({ clip, nodes }) =>
      clip === null ? nodes : [svg("g", { "clip-path": `url(#${clip})` }, ...nodes)],
    );
    const clips = Array.from(this.#clips.values(), ({ node }) => node);
    return clips.length === 0 ? groups : [svg("defs", {}, ...clips), ...groups];
  }

  name(words: string): void {
    this.#name = words;
  }

  save(): void {
    const look = Object.fromEntries(LOOK.map((key) => [key, this[key]]));
    const [dash, x, y, clip] = [this.#dash, this.#x, this.#y, this.#clip];
    this.#saved.push({ look, dash, x, y, clip });
  }

  restore(): void {
    const state = this.#saved.pop();
    if (state === undefined) return;
    Object.assign(this, state.look);
    this.#dash = state.dash;
    this.#x = state.x;
    this.#y = state.y;
    this.#clip = state.clip;
  }

  translate(x: number, y: number): void {
    this.#x += x;
    this.#y += y;
  }

  setLineDash(dash: readonly number[]): void {
    this.#dash = [...dash];
  }

  beginPath(): void {
    this.#path = "";
  }

  moveTo(x: number, y: number): void {
    this.#draw("M", x, y);
  }

  lineTo(x: number, y: number): void {
    this.#draw(this.#path === "" ? "M" : "L", x, y);
  }

  closePath(): void {
    this.#path += "Z";
  }

  rect(x: number, y: number, width: number, height: number): void {
    if (![x, y, width, height].every(Number.isFinite)) return;
    this.#draw("M", x, y);
    this.#path += `h${rounded(width)}v${rounded(height)}h${rounded(-width)}Z`;
  }

  /** Whole circles only, whatever the angles. */
  arc(x: number, y: number, radius: number): void {
    this.#draw("M", x + radius, y);
    const half = `a${radius} ${radius} 0 1 1 `;
    this.#path += `${half}${-2 * radius} 0${half}${2 * radius} 0Z`;
  }

  clip(): void {
    const key = `${this.#clip ?? ""} ${this.#path}`;
    let known = this.#clips.get(key);
    if (known === undefined) {
      const id = `clip${this.#clips.size + 1}`;
      const within = this.#clip === null ? null : `url(#${this.#clip})`;
      const path = svg("path", { d: this.#path });
      known = { id, node: svg("clipPath", { id, "clip-path": within }, path) };
      this.#clips.set(key, known);
    }
    this.#clip = known.id;
  }

  fill(): void {
    this.#add("path", { d: this.#path, ...this.#filled() });
  }

  stroke(): void {
    this.#add("path", { d: this.#path, ...this.#stroked() });
  }

  fillRect(x: number, y: number, width: number, height: number): void {
    if (!(width > 0 && height > 0)) return;
    this.#add("rect", { ...this.#at(x, y), width, height, ...this.#filled() });
  }

  strokeRect(x: number, y: number, width: number, height: number): void {
    if (!(width >= 0 && height >= 0)) return;
    this.#add("rect", { ...this.#at(x, y), width, height, ...this.#stroked() });
  }

  fillText(text: string, x: number, y: number): void {
    this.#write(text, x, y, this.#filled());
  }

  strokeText(text: string, x: number, y: number): void {
    this.#write(text, x, y, this.#stroked());
  }

  measureText(text: string): { readonly width: number } {
    const { size } = this.#letters();
    if (this.#context === null) return { width: text.length * size * LETTER_SHARE };
    this.#context.font = this.font;
    return this.#context.measureText(text);
  }

  /** A picture of pixels, as the address of its data. */
  image(href: string, x: number, y: number, width: number, height: number): void {
    const place = { ...this.#at(x, y), width, height };
    this.#add("image", { href, ...place, preserveAspectRatio: "none" });
  }

  #at(x: number, y: number): { readonly x: number; readonly y: number } {
    return { x: x + this.#x, y: y + this.#y };
  }

  /** As on a canvas, what has no place is not drawn. */
  #draw(command: "L" | "M", x: number, y: number): void {
    if (!Number.isFinite(x) || !Number.isFinite(y)) return;
    this.#path += `${command}${rounded(x + this.#x)} ${rounded(y + this.#y)}`;
  }

  #filled(): SvgNode["attributes"] {
    const opacity = this.globalAlpha === 1 ? null : this.globalAlpha;
    return { fill: colour(this.fillStyle), "fill-opacity": opacity };
  }

  #stroked(): SvgNode["attributes"] {
    return {
      fill: "none",
      stroke: colour(this.strokeStyle),
      "stroke-opacity": this.globalAlpha === 1 ? null : this.globalAlpha,
      "stroke-width": this.lineWidth === 1 ? null : this.lineWidth,
      "stroke-dasharray": this.#dash.length === 0 ? null : this.#dash.join(" "),
      "stroke-linejoin": this.lineJoin === "miter" ? null : this.lineJoin,
    };
  }

  #letters(): { readonly size: number; readonly weight: string | null } {
    const found = /^(?:(bold|\d+) )?(\d+)px/.exec(this.font);
    return { size: Number(found?.[2] ?? FONT_PX), weight: found?.[1] ?? null };
  }

  #write(text: string, x: number, y: number, ink: SvgNode["attributes"]): void {
    const { size, weight } = this.#letters();
    const place = this.#at(x, y + size * (BELOW_SHARE[this.textBaseline] ?? 0));
    const attributes = {
      ...place,
      ...ink,
      "text-anchor": ANCHOR[this.textAlign] ?? null,
      "font-size": size === FONT_PX ? null : size,
      "font-weight": weight,
    };
    if (text !== "") this.#add("text", attributes, text);
  }

  #add(
    tag: string,
    attributes: SvgNode["attributes"],
    ...children: SvgNode["children"]
  ): void {
    const { x = 0, y = 0, d = "-" } = attributes;
    const placed = Number.isFinite(x) && Number.isFinite(y);
    if (!placed || d === "") return;
    const words = this.#name === null ? [] : [svg("title", {}, this.#name)];
    this.#name = null;
    const node = svg(tag, attributes, ...children, ...words);
    const group = this.#nodes.at(-1);
    if (group?.clip === this.#clip) group.nodes.push(node);
    else this.#nodes.push({ clip: this.#clip, nodes: [node] });
  }
}
