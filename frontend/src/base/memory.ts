/** Memory that nobody reads any more, given back before the collector comes by. */

/** An `ArrayBuffer` as new as 2024. */
type Movable = ArrayBuffer & { transfer?: (length: number) => unknown };

/**
 * Free a buffer that a script made: reading it finds nothing from now on. Never one that
 * the browser made, as the body of an answer or what came in a message: Chromium holds
 * on to its memory and only stops counting it, so that the collector comes later still
 * (measured: 220 MB in place of 150). Browsers that cannot do it leave it to the collector.
 */
export function freeBuffer(buffer: Movable): void {
  buffer.transfer?.(0);
}
