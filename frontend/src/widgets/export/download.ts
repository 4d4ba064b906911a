/** Files out of the page. */

/** A name every file system takes, whatever a run is called. */
export function safeFileName(stem: string, extension: string): string {
  const safe = stem
    .normalize("NFKC")
    .replace(/[^\p{L}\p{N}._-]+/gu, "_")
    .replace(/^[._]+|[._]+$/g, "")
    .slice(0, 100);
  return `${safe === "" ? "memboard" : safe}.${extension}`;
}

export function downloadBlob(stem: string, extension: string, blob: Blob): void {
  const url = URL.createObjectURL(blob);
  const link = document.createElement("a");
  link.href = url;
  link.download = safeFileName(stem, extension);
  link.click();
  // The browser has begun reading by then.
  window.setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

export function downloadText(
  stem: string,
  extension: "csv" | "json" | "svg" | "txt",
  text: string,
): void {
  const types = {
    csv: "text/csv",
    json: "application/json",
    svg: "image/svg+xml",
    txt: "text/plain",
  };
  const type = `${types[extension]};charset=utf-8`;
  downloadBlob(stem, extension, new Blob([text], { type }));
}

/** An SVG file's text as PNG, `scale` px to the unit. */
export async function pngOf(
  svgText: string,
  widthPx: number,
  heightPx: number,
  scale: number,
): Promise<Blob> {
  const url = URL.createObjectURL(new Blob([svgText], { type: "image/svg+xml" }));
  try {
    const image = new Image();
    image.src = url;
    await image.decode();
    const canvas = document.createElement("canvas");
    canvas.width = Math.round(widthPx * scale);
    canvas.height = Math.round(heightPx * scale);
    const context = canvas.getContext("2d");
    if (context === null) throw new Error("this browser gives no 2d canvas");
    context.drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((resolve, reject) =>
      canvas.toBlob((blob) => {
        if (blob === null) reject(new Error("the picture is too large for a PNG"));
        else resolve(blob);
      }, "image/png"),
    );
  } finally {
    URL.revokeObjectURL(url);
  }
}
