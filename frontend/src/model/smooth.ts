/**
 * Exponential moving average without start-up bias, as TensorBoard's Scalars smooth.
 * Gaps stay gaps and do not pull the average.
 */
export function smooth(y: Float64Array, weight: number): Float64Array {
  if (weight <= 0) return y;
  const out = new Float64Array(y.length).fill(NaN);
  let sum = 0;
  let total = 0;
  for (let i = 0; i < y.length; i += 1) {
    const value = y[i] ?? NaN;
    if (!Number.isFinite(value)) continue;
    sum = sum * weight + value * (1 - weight);
    total = total * weight + (1 - weight);
    out[i] = sum / total;
  }
  return out;
}
