/** Phrases of an answer are marked in the color of their mask; positions count characters, as Python does. */
import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { clearPage } from "./page.js";

const { answerElements, splitAnswer } = await import("../../src/maskwise/server/static/js/answer_text.js");
const { EditState } = await import("../../src/maskwise/server/static/js/edit_state.js");
const { PALETTE } = await import("../../src/maskwise/server/static/js/palette.js");

const phrase = (start, stop, ...regions) => ({ start, stop, regions });

beforeEach(clearPage);

test("an answer without phrases is one part, an empty one none", () => {
  assert.deepEqual(splitAnswer({ text: "The cup." }), [{ text: "The cup.", regions: [] }]);
  assert.deepEqual(splitAnswer({ text: "" }), []);
});

test("phrases split the answer in the order of their places", () => {
  const answer = { text: "The cup and the bowl.", phrases: [phrase(16, 20, 1), phrase(4, 7, 0)] };
  assert.deepEqual(splitAnswer(answer), [
    { text: "The ", regions: [] },
    { text: "cup", regions: [0] },
    { text: " and the ", regions: [] },
    { text: "bowl", regions: [1] },
    { text: ".", regions: [] },
  ]);
});

test("characters beyond 16 bits count once", () => {
  const parts = splitAnswer({ text: "🍵🍵 tea", phrases: [phrase(3, 6, 0)] });
  assert.deepEqual(parts.map(({ text }) => text), ["🍵🍵 ", "tea"]);
});

test("of overlapping phrases the first counts; phrases without regions are plain text", () => {
  const answer = { text: "red cup here", phrases: [phrase(0, 7, 0), phrase(4, 12, 1), phrase(8, 12)] };
  assert.deepEqual(splitAnswer(answer).map(({ regions }) => regions), [[0], []]);
});

test("marks have the color of their region and report the pointer", () => {
  const seen = [];
  const answer = { text: "a cup", phrases: [phrase(2, 5, 0, 1)] };
  const [plain, mark] = answerElements(answer, [3, 4], { enter: (regions) => seen.push(regions) });
  assert.equal(plain.tagName, "SPAN");
  assert.equal(mark.tagName, "MARK");
  assert.equal(mark.style.getPropertyValue("--c"), PALETTE[3]);
  assert.equal(mark.title, "2 masks");
  mark.dispatchEvent(new Event("pointerenter"));
  assert.deepEqual(seen, [[0, 1]]);
});

test("text from data is text", () => {
  const [element] = answerElements({ text: "<img src=x onerror=alert(1)>" }, []);
  assert.equal(element.children.length, 0);
  assert.equal(element.textContent, "<img src=x onerror=alert(1)>");
});

const item = () => ({
  item: 1,
  question: "What can I drink from?",
  mask_type: "both",
  answer: { text: "The cup and the bowl.", phrases: [phrase(4, 7, 0), phrase(16, 20, 1)] },
  targets: [
    { id: "a", name: "cup", visible: { size: [1, 2], counts: "11" }, amodal: null },
    { id: "b", name: "bowl", visible: { size: [1, 2], counts: "2" }, amodal: null },
  ],
});

test("phrases are found again in changed words", () => {
  const state = new EditState(item());
  state.changeAnswer("Here: the cup or the bowl.");
  assert.deepEqual(state.content.answer.phrases, [phrase(10, 13, 0), phrase(21, 25, 1)]);
  state.changeAnswer("Only a bowl.");
  assert.deepEqual(state.content.answer.phrases, [phrase(7, 11, 1)]);
  state.changeAnswer(" ");
  assert.equal(state.content.answer, null);
});

test("words are linked to a target, a second link adds to the first", () => {
  const state = new EditState(item());
  state.linkPhrase(0, 7, 1);
  assert.deepEqual(state.content.answer.phrases[0], phrase(0, 7, 1));
  state.linkPhrase(0, 7, 0);
  assert.deepEqual(state.content.answer.phrases[0], phrase(0, 7, 1, 0));
});

test("phrases follow targets that are removed or moved", () => {
  const state = new EditState(item());
  state.moveTarget(0, 1);
  assert.deepEqual(state.content.answer.phrases.map(({ regions }) => regions), [[1], [0]]);
  state.undo();
  state.removeTarget(0);
  assert.deepEqual(state.content.answer.phrases, [phrase(16, 20, 0)]);
});

test("an edit holds only what differs, and nothing after undo", () => {
  const state = new EditState(item());
  assert.equal(state.edit(), null);
  state.changeTarget(1, { name: "dish" });
  assert.deepEqual(state.edit(), { targets: [{ id: "a" }, { id: "b", name: "dish" }] });
  assert.ok(state.undo());
  assert.equal(state.edit(), null);
  assert.ok(!state.undo());
});

test("a draft is continued where it was left", () => {
  const begun = new EditState(item(), { edit: { question: "What holds tea?", targets: [{ id: "b" }] } });
  assert.equal(begun.content.question, "What holds tea?");
  assert.deepEqual(begun.content.targets.map(({ name }) => name), ["bowl"]);
  assert.ok(begun.undo(), "the draft itself can be undone");
  assert.equal(begun.content.targets.length, 2);
});
