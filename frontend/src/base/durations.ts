import { counted, threeDigits } from "./bytes";

/** Seconds as `812 ms`, `2.40 s`, `3 m 05 s`, `2 h 07 m`. */
export function formatSeconds(seconds: number | null): string {
  if (seconds === null || !Number.isFinite(seconds)) return "–";
  const size = Math.abs(seconds);
  if (size === 0) return "0 s";
  if (size < 0.9995e-3) return `${threeDigits(seconds * 1e6)} µs`;
  if (size < 0.9995) return `${threeDigits(seconds * 1e3)} ms`;
  if (size < 60) return `${threeDigits(seconds)} s`;
  const sign = seconds < 0 ? "−" : "";
  const whole = Math.round(size);
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60];
  if (hours >= 48) return `${sign}${Math.floor(hours / 24)} d ${hours % 24} h`;
  if (hours > 0) return `${sign}${hours} h ${two(minutes)} m`;
  return `${sign}${minutes} m ${two(whole % 60)} s`;
}

function two(value: number): string {
  return value.toString().padStart(2, "0");
}

/** Local `2026-11-20 23:35:07`. */
export function formatInstant(epochMs: number | null): string {
  if (epochMs === null || !Number.isFinite(epochMs)) return "–";
  const date = new Date(epochMs);
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${formatClock(epochMs)}`;
}

/** Local `23:35:07`. */
export function formatClock(epochMs: number): string {
  const date = new Date(epochMs);
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

/** `4 s ago`, `just now`. */
export function formatAgo(epochMs: number, nowMs: number): string {
  const seconds = (nowMs - epochMs) / 1000;
  if (seconds < 1.5) return "just now";
  if (seconds < 60) return `${Math.round(seconds)} s ago`;
  if (seconds < 3600) return `${Math.round(seconds / 60)} min ago`;
  if (seconds < 48 * 3600) return `${Math.round(seconds / 3600)} h ago`;
  return `${counted(Math.round(seconds / 86400), "day")} ago`;
}
