// Fails when the built page is heavier than promised. Sizes are gzip level 9, in bytes.

import { readdirSync, readFileSync } from "node:fs";
import { extname, join } from "node:path";
import { gzipSync } from "node:zlib";

const KB = 1000;
const STATIC = new URL("../../tb_plugin/static/", import.meta.url).pathname;

const files = readdirSync(STATIC, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => {
    const path = join(entry.parentPath, entry.name);
    return { name: path.slice(STATIC.length), content: readFileSync(path) };
  });

const gzipped = (file) => gzipSync(file.content, { level: 9 }).length;
const raw = (file) => file.content.length;
const sum = (chosen, size) => chosen.reduce((total, file) => total + size(file), 0);

const scripts = files.filter((file) => extname(file.name) === ".js");
const fonts = files.filter((file) => extname(file.name) === ".woff2");
// What app.html loads before anything can be seen.
const page = files.find((file) => file.name === "app.html");
const html = page === undefined ? "" : page.content.toString("utf8");
const entry = scripts.filter((file) => html.includes(file.name));

const checks = [
  [
    "index.js",
    sum(
      scripts.filter((f) => f.name === "index.js"),
      gzipped,
    ),
    1 * KB,
  ],
  ["entry chunk", sum(entry, gzipped), 40 * KB],
  ["all JavaScript", sum(scripts, gzipped), 180 * KB],
  // woff2 is compressed already.
  ["fonts", sum(fonts, raw), 60 * KB],
];

for (const file of scripts) console.log(`  ${file.name}: ${gzipped(file)} gzip`);
let failed = entry.length === 0;
if (failed) console.error("app.html names no script: was the page built?");
for (const [what, bytes, most] of checks) {
  const over = bytes > most;
  failed ||= over;
  console.log(`${over ? "OVER" : "ok  "} ${what}: ${bytes} of ${most} bytes`);
}
process.exitCode = failed ? 1 : 0;
