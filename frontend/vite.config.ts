import { defineConfig } from "vitest/config";

/** What the page itself needs, before any view. */
const CORE =
  /preact|src\/(base|api)\/|src\/widgets\/(icon|menu|state|problem_list|status)\/|src\/model\/(rank_notes|origin)\./;

/**
 * Small modules that several views need. In one file they deflate better than in twenty,
 * and one request fetches them.
 */
const SHARED =
  /src\/(model\/(axis|category|limit_label|peaks|quantity|signed|smooth|table|ticks|tree)\.|widgets\/(export|minimap|row_table)\/|widgets\/line_chart\/(chart_button|use_size|zoom_buttons)\.|render\/(gestures|palette|raster|viewport)\.|views\/(absent_list|choices|close_details|copy_icon|drawer|heat_detail|not_collected|peak_commands|range_commands|use_range|x_params|x_switch)\.)/;

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
