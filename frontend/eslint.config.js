import js from "@eslint/js";
import tseslint from "typescript-eslint";
import { countedNouns } from "./scripts/counted_nouns.js";

/** They only pack several properties or elements into one line. */
const SPREAD_LITERALS = [
  "SpreadElement > ObjectExpression",
  "SpreadElement > ArrayExpression",
  "SpreadElement > TSAsExpression > ArrayExpression",
  "JSXSpreadAttribute > ObjectExpression",
];

/** They say nothing of what a variable, a parameter or a field contains. */
const EMPTY_NAMES = "found|one|at|known|held|what|words|given|said";

export default tseslint.config(
  { ignores: ["node_modules/"] },
  js.configs.recommended,
  {
    files: ["src/**/*.{ts,tsx}", "vite.config.ts"],
    extends: [
      tseslint.configs.strictTypeChecked,
      tseslint.configs.stylisticTypeChecked,
    ],
    languageOptions: {
      parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname },
    },
    plugins: { memboard: { rules: { "counted-nouns": countedNouns } } },
    rules: {
      "memboard/counted-nouns": "error",
      "@typescript-eslint/no-explicit-any": "error",
      // `() => choose(rank)` as a handler says what it does in one line.
      "@typescript-eslint/no-confusing-void-expression": [
        "error",
        { ignoreArrowShorthand: true },
      ],
      // Numbers in labels are wanted; objects and null in them stay errors.
      "@typescript-eslint/restrict-template-expressions": [
        "error",
        { allowNumber: true },
      ],
      "@typescript-eslint/switch-exhaustiveness-check": "error",
      "@typescript-eslint/naming-convention": [
        "error",
        {
          selector: ["variable", "parameter", "function", "typeProperty"],
          format: null,
          custom: { regex: `^(${EMPTY_NAMES})$`, match: false },
        },
      ],
      "@typescript-eslint/consistent-type-imports": "error",
      "no-restricted-syntax": [
        "error",
        ...SPREAD_LITERALS.map((selector) => ({
          selector,
          message: "Write the properties or elements out, without a spread.",
        })),
      ],
      eqeqeq: ["error", "always"],
      "no-console": "error",
    },
  },
  {
    // Its names are those of the server's contract.
    files: ["src/api/types.gen.ts"],
    rules: { "@typescript-eslint/naming-convention": "off" },
  },
  {
    files: ["scripts/**/*.js", "eslint.config.js"],
    languageOptions: {
      globals: { console: "readonly", process: "readonly", URL: "readonly" },
    },
  },
);
