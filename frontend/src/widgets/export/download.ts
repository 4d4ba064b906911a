import type { Figure } from "./source";

/** Valid on every file system. */
export function safeFileName(stem: string, extension: string): string {
  const safe = stem
    .normalize("NFKC")
    .replace(/[^\p{L}\p{N}._-]+/gu, "_")
    .replace(/^[._]+|[._]+$/g, "")
    .slice(0, 100);
  return `${safe === "" ? "memboard" : safe}.${extension}`;
}

const TYPES = {
  csv: "text/csv",
  json: "application/json",
  png: "image/png",
  svg: "image/svg+xml",
  txt: "text/plain",
} as const;

export function download(
  stem: string,
  extension: keyof typeof TYPES,
  content: Blob | string,
): void {
  const type = `${TYPES[extension]};charset=utf-8`;
  const blob = typeof content === "string" ? new Blob([content], { type }) : content;
  const url = URL.createObjectURL(blob);
  const link = document.createElement("a");
  link.href = url;
  link.download = safeFileName(stem, extension);
  link.click();
  // The browser has started reading by then.
  window.setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** Sharp on paper and on dense screens. */
const PNG_SCALE = 2;

export async function pngOf({ svg, widthPx, heightPx }: Figure): Promise<Blob> {
  const url = URL.createObjectURL(new Blob([svg], { type: TYPES.svg }));
  try {
    const image = new Image();
    image.src = url;
    await image.decode();
    const [wide, tall] = [widthPx, heightPx].map((px) => Math.round(px * PNG_SCALE));
    const canvas = new OffscreenCanvas(wide ?? 0, tall ?? 0);
    canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
    return await canvas.convertToBlob();
  } finally {
    URL.revokeObjectURL(url);
  }
}
