import { defineConfig } from "vitest/config";

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
        entryFileNames: (chunk) =>
          chunk.name === "index" ? "index.js" : "assets/[name]-[hash].js",
        chunkFileNames: "assets/[name]-[hash].js",
        assetFileNames: "assets/[name]-[hash][extname]",
      },
    },
  },
  test: { include: ["src/**/*.test.{ts,tsx}"], environment: "node", css: true },
});
