// Fails when the built page is heavier than promised. Sizes are gzip level 9, in bytes.

import { readdirSync, readFileSync } from "node:fs";
import { basename, extname, join } from "node:path";
import { gzipSync } from "node:zlib";

const KB = 1000;
const ENTRY_MOST = 34 * KB;
const PAGE_MOST = 140 * KB;
const ALL_MOST = 220 * KB;
const FONTS_MOST = 60 * KB;

// Another folder can be named, for a build that is only looked at.
const folder = process.argv[2] ?? "../../tb_plugin/static/";
const STATIC = new URL(`${folder.replace(/\/$/, "")}/`, import.meta.url).pathname;

const files = readdirSync(STATIC, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => {
    const path = join(entry.parentPath, entry.name);
    const content = readFileSync(path);
    return { name: path.slice(STATIC.length), content };
  });

const gzipped = (file) => gzipSync(file.content, { level: 9 }).length;
const raw = (file) => file.content.length;
const sum = (chosen, size) => [...chosen].reduce((total, f) => total + size(f), 0);

const scripts = files.filter((file) => extname(file.name) === ".js");
const fonts = files.filter((file) => extname(file.name) === ".woff2");
const byBase = new Map(scripts.map((file) => [basename(file.name), file]));
const textOf = new Map(scripts.map((file) => [file, file.content.toString("utf8")]));

const LAZY = /import\(\s*[`"']\.\/([^`"']+)[`"']\s*\)/g;

/** The scripts that another one imports only when it wants them. */
function lazyOf(script) {
  const names = [...textOf.get(script).matchAll(LAZY)].map((match) => match[1]);
  return names.map((name) => byBase.get(name)).filter((file) => file !== undefined);
}

/** The scripts that come with another one: its imports and its workers. */
function eagerOf(script) {
  const rest = textOf.get(script).replaceAll(LAZY, "");
  return [...byBase].filter(([name]) => rest.includes(name)).map(([, file]) => file);
}

/** All that has to be fetched before the first of these runs whole. */
function closure(first) {
  const found = new Set(first);
  for (const script of found) for (const other of eagerOf(script)) found.add(other);
  return found;
}

// What app.html loads before anything can be seen.
const page = files.find((file) => file.name === "app.html");
const html = page === undefined ? "" : page.content.toString("utf8");
const entry = closure(scripts.filter((file) => html.includes(file.name)));
const views = [...new Set([...entry].flatMap(lazyOf))];

const checks = [
  ["index.js", gzipped(byBase.get("index.js") ?? { content: "" }), 1 * KB],
  ["entry", sum(entry, gzipped), ENTRY_MOST],
  ...views.map((view) => [
    `entry and ${basename(view.name).replace(/-.{8}\.js$/, "")}`,
    sum(closure([...entry, view]), gzipped),
    PAGE_MOST,
  ]),
  ["all JavaScript", sum(scripts, gzipped), ALL_MOST],
  // woff2 is compressed already.
  ["fonts", sum(fonts, raw), FONTS_MOST],
];

for (const file of scripts) console.log(`  ${file.name}: ${gzipped(file)} gzip`);
let failed = entry.size === 0 || views.length === 0;
if (failed) console.error("app.html names no script, or that no view: was it built?");
for (const [what, bytes, most] of checks) {
  const over = bytes > most;
  failed ||= over;
  console.log(`${over ? "OVER" : "ok  "} ${what}: ${bytes} of ${most} bytes`);
}
process.exitCode = failed ? 1 : 0;
