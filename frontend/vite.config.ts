import { defineConfig } from "vitest/config";

/** What the page itself needs, before any page. */
const CORE =
  /preact|src\/(base|api)\/|src\/widgets\/(icon|menu|state|problem_list|status)\/|src\/model\/words\/(rank_notes|origin)\./;

/**
 * Small modules that several pages need. In one file they deflate better than in twenty,
 * and one request fetches them.
 */
const SHARED = new RegExp(
  [
    "model/(category|table|tree)",
    "model/lines/(axis|peaks|ticks)",
    "model/words/(limit_label|quantity|signed)",
    "render/(gestures|palette|raster|viewport)",
    "pages/shared/(controls/(choices|x_switch)|heat_detail)",
    "pages/shared/panels/(absent_list|close_details|drawer|not_collected)",
    "pages/shared/range/(commands|params|peaks|use_range)",
    "widgets/(export|minimap|plot|row_table)/[a-z_]+",
    "widgets/line_chart/(chart_button|use_size|zoom_buttons)",
  ]
    .map((name) => `src/${name}\\.`)
    .join("|"),
);

/**
 * Two entries: `index.js`, the module TensorBoard imports, keeps its name; `app.html`
 * is our own page. Everything else is content-hashed under `assets/`, so the server may
 * let browsers keep it for a year. Nothing in the output depends on when it was built.
 */
export default defineConfig({
  base: "./",
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
          groups: [
            { name: "core", test: CORE, priority: 2 },
            { name: "shared", test: SHARED, priority: 1, minShareCount: 2 },
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
