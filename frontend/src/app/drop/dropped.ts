/** What a drag over the page carries. Browsers tell it while the event lasts only. */

export interface DroppedItem {
  /** null: a directory, whose files no page may read unasked. */
  readonly file: File | null;
  readonly name: string;
}

/** What a drag carries, as far as it is files. */
export function itemsOf(transfer: DataTransfer): readonly DroppedItem[] {
  const found: DroppedItem[] = [];
  for (const item of transfer.items) {
    if (item.kind !== "file") continue;
    const file = item.getAsFile();
    const entry = item.webkitGetAsEntry();
    if (entry?.isDirectory === true) found.push({ file: null, name: entry.name });
    else if (file !== null) found.push({ file, name: file.name });
  }
  return found;
}

/** Whether a drag carries files, which is all that is known before they are dropped. */
export function carriesFiles(transfer: DataTransfer | null): boolean {
  return transfer?.types.includes("Files") === true;
}
