/** Rules for the scripts of the pages and for their tests. */
import js from "@eslint/js";
import globals from "globals";

const HTML = "text from data is text: build elements with el()";

export default [
  { ignores: ["**/node_modules/"] },
  js.configs.recommended,
  {
    languageOptions: { ecmaVersion: 2022, sourceType: "module" },
    linterOptions: { reportUnusedDisableDirectives: "error" },
    rules: {
      "array-callback-return": "error",
      "consistent-return": "off",
      "default-case-last": "error",
      eqeqeq: "error",
      "no-constructor-return": "error",
      "no-implied-eval": "error",
      "no-promise-executor-return": "error",
      "no-shadow": "error",
      "no-template-curly-in-string": "error",
      "no-unused-expressions": ["error", { allowShortCircuit: false, allowTernary: true }],
      "no-use-before-define": ["error", { functions: false, classes: false, variables: false }],
      "no-var": "error",
      "object-shorthand": "error",
      "prefer-const": "error",
      "require-await": "error",
      "no-restricted-properties": [
        "error",
        ...["innerHTML", "outerHTML", "insertAdjacentHTML"].map((property) => ({ property, message: HTML })),
        { object: "document", property: "write", message: HTML },
      ],
    },
  },
  {
    files: ["src/maskwise/server/static/js/**"],
    languageOptions: { globals: { ...globals.browser } },
  },
  {
    files: ["src/maskwise/server/static/js/review_worker.js"],
    languageOptions: { sourceType: "script", globals: { ...globals.serviceworker } },
  },
  {
    files: ["tests/web/**"],
    languageOptions: { globals: { ...globals.node, ...globals.browser } },
  },
];
