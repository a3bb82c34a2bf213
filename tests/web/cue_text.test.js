/** Words that decide about the mask type are marked; positions count characters, as Python does. */
import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { clearPage } from "./page.js";

const { cueElements } = await import("../../src/maskwise/server/static/js/cue_text.js");

beforeEach(clearPage);

const text = (part) => (typeof part === "string" ? part : part.textContent);

test("a question without cues stays as it is", () => {
  assert.deepEqual(cueElements("the dog", []), ["the dog"]);
});

test("cues are marked with their kind, also behind characters of two units", () => {
  const parts = cueElements("😀 all of it", [{ start: 2, end: 8, text: "all of", kind: "completeness", polarity: "amodal" }]);
  assert.deepEqual(parts.map(text), ["😀 ", "all of", " it"]);
  assert.equal(parts[1].getAttribute("class"), "cue amodal");
  assert.equal(parts[1].title, "completeness: asks for the amodal mask");
});
