/**
 * On the page charts paint on a canvas, in exports on `SvgPen`, which escapes all text.
 */

/** Common to `CanvasRenderingContext2D`; `name` and `image` exist only in exports. */
export type Pen = Omit<SvgPen, "arc" | "file" | "image" | "name" | "written"> &
  Pick<CanvasRenderingContext2D, "arc"> &
  Partial<Pick<SvgPen, "image" | "name">>;

const FONT_PX = 11;
const FAMILY = "Roboto, Helvetica, Arial, sans-serif";
export const FONT = `${FONT_PX}px ${FAMILY}`;

/** null: no attribute. */
type Attributes = Readonly<Record<string, string | number | null>>;

/** Mean width of a letter by font size, where no canvas can measure. */
const LETTER_SHARE = 0.55;
/** Offset of the baseline by font size. */
const BELOW_SHARE: Partial<Record<CanvasTextBaseline, number>> = {
  middle: 0.36,
  top: 0.8,
};
const ANCHOR: Partial<Record<CanvasTextAlign, string>> = {
  center: "middle",
  right: "end",
  end: "end",
};

/** XML allows no control characters and no lone surrogates, escaped or not. */
const FORBIDDEN = /[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu;

function escaped(text: string): string {
  return text
    .replace(FORBIDDEN, "\ufffd")
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}

/** To 0.01 px. */
function rounded(px: number): number {
  return Math.round(px * 100) / 100;
}

function opening(tag: string, attributes: Attributes): string {
  const pairs = Object.entries(attributes).map(([name, value]) => {
    if (value === null) return "";
    return ` ${name}="${typeof value === "number" ? rounded(value) : escaped(value)}"`;
  });
  return `<${tag}${pairs.join("")}>`;
}

function colour(style: SvgPen["fillStyle"]): string {
  if (typeof style !== "string") throw new TypeError("pictures have plain colours");
  return style;
}

export class SvgPen {
  fillStyle: CanvasFillStrokeStyles["fillStyle"] = "#000000";
  strokeStyle: CanvasFillStrokeStyles["strokeStyle"] = "#000000";
  font = FONT;
  globalAlpha = 1;
  lineJoin: CanvasLineJoin = "miter";
  lineWidth = 1;
  textAlign: CanvasTextAlign = "start";
  textBaseline: CanvasTextBaseline = "alphabetic";
  #dash: readonly number[] = [];
  #path = "";
  #name: string | null = null;
  #written = "";
  #numClips = 0;
  #numGroups = 0;
  readonly #restores: (() => void)[] = [];
  readonly #context: CanvasRenderingContext2D | null =
    typeof document === "undefined"
      ? null
      : document.createElement("canvas").getContext("2d");

  written(): string {
    return `${this.#written}${"</g>".repeat(this.#numGroups)}`;
  }

  file(title: string, widthPx: number, heightPx: number, background: string): string {
    const root = opening("svg", {
      xmlns: "http://www.w3.org/2000/svg",
      width: widthPx,
      height: heightPx,
      viewBox: `0 0 ${widthPx} ${heightPx}`,
      "font-family": FAMILY,
      "font-size": FONT_PX,
    });
    const ground = { width: "100%", height: "100%", fill: background };
    return [
      `<?xml version="1.0" encoding="UTF-8"?>\n${root}<title>${escaped(title)}</title>`,
      `${opening("rect", ground)}</rect>${this.written()}</svg>\n`,
    ].join("");
  }

  /** Tooltip of the next element. */
  name(tooltip: string): void {
    this.#name = tooltip;
  }

  save(): void {
    // As a canvas does: public fields, dash, transforms and clips.
    const look = Object.assign({}, this);
    const [dash, numGroups] = [this.#dash, this.#numGroups];
    this.#restores.push(() => {
      Object.assign(this, look);
      this.#dash = dash;
      this.#written += "</g>".repeat(this.#numGroups - numGroups);
      this.#numGroups = numGroups;
    });
  }

  restore(): void {
    this.#restores.pop()?.();
  }

  translate(x: number, y: number): void {
    this.#group({ transform: `translate(${rounded(x)} ${rounded(y)})` });
  }

  clip(): void {
    this.#numClips += 1;
    const id = `clip${this.#numClips}`;
    this.#written += `<clipPath id="${id}"><path d="${this.#path}"/></clipPath>`;
    this.#group({ "clip-path": `url(#${id})` });
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

  /** Always a full circle. */
  arc(x: number, y: number, radius: number): void {
    this.#draw("M", x + radius, y);
    const half = `a${radius} ${radius} 0 1 1 `;
    this.#path += `${half}${-2 * radius} 0${half}${2 * radius} 0Z`;
  }

  fill(): void {
    this.#add("path", { d: this.#path, ...this.#filled() });
  }

  stroke(): void {
    this.#add("path", { d: this.#path, ...this.#stroked() });
  }

  fillRect(x: number, y: number, width: number, height: number): void {
    if (!(width > 0 && height > 0)) return;
    this.#add("rect", { x, y, width, height, ...this.#filled() });
  }

  strokeRect(x: number, y: number, width: number, height: number): void {
    if (!(width >= 0 && height >= 0)) return;
    this.#add("rect", { x, y, width, height, ...this.#stroked() });
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

  /** `href`: data URL. */
  image(href: string, x: number, y: number, width: number, height: number): void {
    this.#add("image", { href, x, y, width, height, preserveAspectRatio: "none" });
  }

  #group(attributes: Attributes): void {
    this.#written += opening("g", attributes);
    this.#numGroups += 1;
  }

  /** As on a canvas, points that are not finite are skipped. */
  #draw(command: "L" | "M", x: number, y: number): void {
    if (!Number.isFinite(x) || !Number.isFinite(y)) return;
    this.#path += `${command}${rounded(x)} ${rounded(y)}`;
  }

  #filled(): Attributes {
    const opacity = this.globalAlpha === 1 ? null : this.globalAlpha;
    return { fill: colour(this.fillStyle), "fill-opacity": opacity };
  }

  #stroked(): Attributes {
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
    const match = /^(?:(bold|\d+) )?(\d+)px/.exec(this.font);
    return { size: Number(match?.[2] ?? FONT_PX), weight: match?.[1] ?? null };
  }

  #write(text: string, x: number, y: number, ink: Attributes): void {
    const { size, weight } = this.#letters();
    const attributes = {
      x,
      y: y + size * (BELOW_SHARE[this.textBaseline] ?? 0),
      ...ink,
      "text-anchor": ANCHOR[this.textAlign] ?? null,
      "font-size": size === FONT_PX ? null : size,
      "font-weight": weight,
    };
    if (text !== "") this.#add("text", attributes, text);
  }

  #add(tag: string, attributes: Attributes, text = ""): void {
    const { x = 0, y = 0, d = "-" } = attributes;
    if (!Number.isFinite(x) || !Number.isFinite(y) || d === "") return;
    const named = this.#name === null ? "" : `<title>${escaped(this.#name)}</title>`;
    this.#name = null;
    this.#written += `${opening(tag, attributes)}${escaped(text)}${named}</${tag}>`;
  }
}
