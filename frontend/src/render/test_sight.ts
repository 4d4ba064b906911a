/** Colour distances under simulated colour blindness, for tests of palettes. */

import { pixelOf } from "./palette";

type Vector = readonly [number, number, number];
type Matrix = readonly [Vector, Vector, Vector];

/** Machado, Oliveira and Fernandes 2009, on linear sRGB, at full severity. */
const SIGHTS: Readonly<Record<string, Matrix>> = {
  normal: [
    [1, 0, 0],
    [0, 1, 0],
    [0, 0, 1],
  ],
  protan: [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
  ],
  deutan: [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.01182, 0.04294, 0.968881],
  ],
  tritan: [
    [1.255528, -0.076749, -0.178779],
    [-0.078411, 0.930809, 0.147602],
    [0.004733, 0.691367, 0.3039],
  ],
};

function times(matrix: Matrix, v: Vector): Vector {
  const row = (r: Vector): number => r[0] * v[0] + r[1] * v[1] + r[2] * v[2];
  return [row(matrix[0]), row(matrix[1]), row(matrix[2])];
}

export function linear(colour: string): Vector {
  const pixel = pixelOf(colour);
  const channel = (shift: number): number => {
    const c = ((pixel >>> shift) & 255) / 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  };
  return [channel(0), channel(8), channel(16)];
}

function oklab(rgb: Vector): Vector {
  const clipped = rgb.map((c) => Math.min(Math.max(c, 0), 1));
  const cones = times(
    [
      [0.4122214708, 0.5363325363, 0.0514459929],
      [0.2119034982, 0.6806995451, 0.1073969566],
      [0.0883024619, 0.2817188376, 0.6299787005],
    ],
    [clipped[0] ?? 0, clipped[1] ?? 0, clipped[2] ?? 0],
  );
  return times(
    [
      [0.2104542553, 0.793617785, -0.0040720468],
      [1.9779984951, -2.428592205, 0.4505937099],
      [0.0259040371, 0.7827717662, -0.808675766],
    ],
    [Math.cbrt(cones[0]), Math.cbrt(cones[1]), Math.cbrt(cones[2])],
  );
}

/** Smallest OKLab distance of any two, times 100, over all kinds of sight. */
export function worst(colours: readonly string[]): number {
  let least = Infinity;
  for (const sight of Object.values(SIGHTS)) {
    const seen = colours.map((colour) => oklab(times(sight, linear(colour))));
    seen.forEach((a, i) => {
      for (const b of seen.slice(i + 1)) {
        least = Math.min(least, Math.hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]));
      }
    });
  }
  return 100 * least;
}
