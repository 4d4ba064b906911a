import type { AllocationColour, AllocationGroup } from "../../../api/types.gen";
import { tokens, type Theme } from "../../../base/tokens";
import { categoryColour, categoryLabel, siteColour } from "../../../model/category";
import { hexOf, paletteAt, pixelOf } from "../../../render/palette";
import type { RunColours } from "../../../render/raster/runs";
import type { BlockPicture, DirectLabel } from "../picture";
import type { BlockTile } from "../tile";

/** Groups that are not one thing: the rest, and memory without a name. */
const GREY_KEYS = new Set(["others", "before", "outside", "unknown", "all"]);

export const NO_LINES: ReadonlySet<string> = new Set();

/** Lightness of blocks of one group, so that neighbours differ. */
const VARIANTS = [0, 0.08, -0.08, 0.04, -0.04] as const;
/** Share of its colour that a faded block has. */
const DIMMED_KEEPS = 0.16;

/** By the order in the whole history: equal in every tile. */
export function groupColours(
  theme: Theme,
  groups: readonly AllocationGroup[],
  colour: AllocationColour,
  culprits: ReadonlySet<string>,
): readonly string[] {
  const placed = groups.filter(({ key }) => !GREY_KEYS.has(key));
  return groups.map((group) => {
    const { category, key, label, stack } = group;
    const named = culprits.has(label);
    if (stack !== null && (named || category !== null)) return siteColour(theme, named);
    if (category !== null) return categoryColour(theme, category);
    if (GREY_KEYS.has(key)) return categoryColour(theme, "unknown");
    const place = placed.indexOf(group);
    if (colour === "age") return ageColour(placed.length - 1 - place, placed.length);
    return placeColour(theme, place);
  });
}

export function groupLabel({ category, label, stack }: AllocationGroup): string {
  return category === null || stack !== null ? label : categoryLabel(category);
}

/** From young to old, dark to light. */
function ageColour(place: number, num: number): string {
  return hexOf(paletteAt("viridis", num < 2 ? 0.5 : 0.05 + (0.9 * place) / (num - 1)));
}

/** `keeps`: share of `pixel`, 0 to 1. */
export function mixed(pixel: number, other: number, keeps: number): number {
  const part = (shift: number): number => {
    const [a, b] = [(pixel >>> shift) & 255, (other >>> shift) & 255];
    return Math.round(a * keeps + b * (1 - keeps)) << shift;
  };
  return ((255 << 24) | part(16) | part(8) | part(0)) >>> 0;
}

/** Neighbouring numbers get distant results. */
function scattered(value: number): number {
  return Math.imul(value ^ 0x9e3779b9, 0x85ebca6b) >>> 7;
}

export type Look = Pick<BlockPicture, "theme" | "only" | "matches" | "culprits">;

interface TileColours {
  /** By group. */
  readonly colours: readonly string[];
  /** By band. */
  readonly bandColours: readonly string[];
}

function isChosen(tile: BlockTile, slot: number, { only, matches }: Look): boolean {
  const { groups, lives } = tile.answer;
  if (only !== "" && groups[lives.group[slot] ?? -1]?.key !== only) return false;
  return matches === null || matches(tile, slot);
}

export function tileColours(
  { answer: { groups, bands }, colour }: BlockTile,
  { theme, culprits }: Pick<Look, "theme" | "culprits">,
): TileColours {
  const colours = groupColours(theme, groups, colour, culprits);
  // Blocks too thin to draw have their group's colour where bands are groups; otherwise
  // no colour of the legend fits.
  const none = categoryColour(theme, "unknown");
  const bandColours = bands.map(
    ({ key }) => colours[groups.findIndex((group) => group.key === key)] ?? none,
  );
  return { colours, bandColours };
}

/** The label's background; null: faded, or of several colours. */
export function labelColour(
  label: DirectLabel,
  tile: BlockTile,
  look: Look,
  { colours, bandColours }: TileColours,
): string | null {
  const { kind, of } = label;
  const { bands, lives } = tile.answer;
  if (label.overflows === true) return null;
  if (kind === "band") {
    // A search fades only some blocks of a band.
    const all = look.only === "" || bands[of]?.key === look.only;
    return look.matches === null && all ? (bandColours[of] ?? null) : null;
  }
  return isChosen(tile, of, look) ? (colours[lives.group[of] ?? 0] ?? null) : null;
}

/** By group, and one more in the background's colour; by variant; plain and faded. */
function variantsOf(colours: readonly string[], bg: number): Uint32Array {
  const pixels = new Uint32Array(2 * VARIANTS.length * (colours.length + 1));
  [...colours.map(pixelOf), bg].forEach((pixel, group) =>
    VARIANTS.forEach((share, which) => {
      const own =
        group === colours.length
          ? pixel
          : mixed(pixel, share > 0 ? 0xffffffff : 0, 1 - Math.abs(share));
      const index = 2 * (group * VARIANTS.length + which);
      pixels[index] = own;
      pixels[index + 1] = mixed(own, bg, DIMMED_KEEPS);
    }),
  );
  return pixels;
}

export function runColours(tile: BlockTile, look: Look): RunColours {
  const { theme, only, matches } = look;
  const { lives } = tile.answer;
  const { colours, bandColours } = tileColours(tile, look);
  const all = only === "" && matches === null;
  const bg = pixelOf(tokens(theme).bg);
  const unknown = colours.length;
  const pixels = variantsOf(colours, bg);
  const ofStack = new Map<number, number>();
  const num = lives.life.length;
  const bySlot = new Uint32Array(num);
  for (let slot = 0; slot < num; slot += 1) {
    const stack = lives.stack[slot] ?? -1;
    let which = ofStack.get(stack);
    if (which === undefined) {
      which = scattered(stack) % VARIANTS.length;
      ofStack.set(stack, which);
    }
    const group = Math.min(lives.group[slot] ?? 0, unknown);
    const seen = all || isChosen(tile, slot, look);
    const index = 2 * (group * VARIANTS.length + which) + (seen ? 0 : 1);
    bySlot[slot] = pixels[index] ?? 0;
  }
  const byBand = Uint32Array.from(bandColours, (colour) => {
    const pixel = pixelOf(colour);
    return all ? pixel : mixed(pixel, bg, DIMMED_KEEPS);
  });
  return { bySlot, byBand, edge: bg };
}

/** Black or white, whichever has more contrast. */
export function inkOn(colour: string | number): string {
  const pixel = typeof colour === "number" ? colour : pixelOf(colour);
  const linear = (shift: number): number => {
    const part = ((pixel >>> shift) & 255) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  };
  const luminance = 0.2126 * linear(0) + 0.7152 * linear(8) + 0.0722 * linear(16);
  return luminance > 0.22 ? "#212121" : "#ffffff";
}

/**
 * Colours without a meaning of their own. Found by search: the smallest OKLab distance of
 * any two and of the grey, over normal sight and three simulated colour blindnesses, is
 * 10.2 in light and 9.1 in dark.
 */
const PLACES: Readonly<Record<Theme, string>> = {
  light:
    "#353b9e #cc663d #9cb574 #fdbf2c #800822 #dd7ad6 " +
    "#5be9aa #625dca #984b1b #5b3e63 #411a5e",
  dark:
    "#76a4e5 #cb9c0a #758d4f #f6e59d #a24e08 #c0e5e1 " +
    "#966983 #41d2fd #5577cc #e3bb62 #adc4ae",
};

/** Share of its colour that a repeated colour has. */
const AGAIN_KEEPS = 0.55;

function placeColour(theme: Theme, place: number): string {
  const colours = PLACES[theme].split(" ");
  const colour = colours[place % colours.length] ?? "#888888";
  if (place < colours.length) return colour;
  return hexOf(mixed(pixelOf(colour), pixelOf(tokens(theme).bg), AGAIN_KEEPS));
}
