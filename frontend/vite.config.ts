import { readFileSync } from "node:fs";
import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";

/** What the page itself needs, before any page. */
const CORE =
  /preact|src\/(app|base|api)\/|src\/widgets\/(icon|menu|state|problem_list|status)\/|src\/widgets\/finding\/place\.|src\/model\/words\/(rank_notes|origin|column_label)\./;

/** Writes the licences of all packages whose code or fonts the page holds. */
function notices(): Plugin {
  return {
    name: "notices",
    generateBundle(_, bundle) {
      const files = Object.values(bundle).flatMap((file) =>
        file.type === "chunk" ? file.moduleIds : file.originalFileNames,
      );
      const folders = files.map(
        (file) => /node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0],
      );
      const texts = [...new Set(folders)].sort().flatMap((folder) => {
        if (folder === undefined) return [];
        const { name, version } = JSON.parse(
          readFileSync(`${folder}/package.json`, "utf8"),
        ) as { name: string; version: string };
        return [
          `${name} ${version}\n\n${readFileSync(`${folder}/LICENSE`, "utf8").trim()}\n`,
        ];
      });
      const source = texts.join(`\n${"-".repeat(72)}\n\n`);
      this.emitFile({ type: "asset", fileName: "NOTICES.txt", source });
    },
  };
}

/**
 * Two entries: `index.js`, the module TensorBoard imports, keeps its name; `app.html`
 * is our own page. Everything else is content-hashed under `assets/`, so the server may
 * let browsers keep it for a year. Nothing in the output depends on when it was built.
 */
export default defineConfig({
  base: "./",
  plugins: [notices()],
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  worker: { format: "es" },
  build: {
    outDir: "../tb_plugin/static",
    emptyOutDir: true,
    target: "es2022",
    modulePreload: false,
    // Under the page's CSP a font or image inlined as data: would work, but then it
    // could not be cached by name.
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    rolldownOptions: {
      input: { index: "src/index.ts", app: "app.html" },
      preserveEntrySignatures: "exports-only",
      output: {
        codeSplitting: {
          // Few files deflate better than many: what several pages need is one, and so
          // are the tabs of a page.
          groups: [
            { name: "core", test: CORE, priority: 3 },
            { name: "shared", test: /src\//, priority: 2, minShareCount: 2 },
            { name: "memory", test: /pages\/memory\/(calls|modules)\//, priority: 1 },
            { name: "time", test: /pages\/time\/(?!trace)/, priority: 1 },
          ],
        },
        entryFileNames: (chunk) =>
          chunk.name === "index" ? "index.js" : "assets/[name]-[hash].js",
        chunkFileNames: "assets/[name]-[hash].js",
        assetFileNames: "assets/[name]-[hash][extname]",
      },
    },
  },
  test: {
    include: ["src/**/*.test.{ts,tsx}"],
    environment: "node",
    css: true,
    // A busy machine is no failure.
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
