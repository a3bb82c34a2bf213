/** Keys do what the table says, and nothing while somebody types. */
import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { clearPage, press, release } from "./page.js";

const { el } = await import("../../src/maskwise/server/static/js/dom.js");
const { helpDialog, listenToKeys } = await import("../../src/maskwise/server/static/js/keys.js");
const { viewKeys } = await import("../../src/maskwise/server/static/js/view_keys.js");

const done = [];
let firstTakes = () => false;
const bindings = [
  { keys: ["a"], label: "accept", group: "Decide", run: () => done.push("accept") },
  { keys: ["Ctrl+z", "u"], label: "undo", group: "Decide", run: () => done.push("undo") },
  { keys: ["h", " "], label: "hide", group: "Look", run: () => done.push("hide"), release: () => done.push("show") },
  { keys: ["1", "2", "3", "4", "5"], label: "choose", group: "Look", run: (event) => done.push(event.key) },
];
listenToKeys(bindings, (event) => firstTakes(event));

beforeEach(() => {
  clearPage();
  done.length = 0;
  firstTakes = () => false;
});

test("a key runs its binding, in upper case too", () => {
  assert.ok(press("a"));
  assert.ok(press("A", { shiftKey: true }));
  assert.ok(!press("z"), "keys that are not in the table stay the browser's");
  assert.deepEqual(done, ["accept", "accept"]);
});

test("shortcuts of the browser and the system stay theirs", () => {
  assert.ok(!press("a", { ctrlKey: true }));
  assert.ok(!press("a", { altKey: true }));
  assert.ok(press("z", { ctrlKey: true }));
  assert.ok(press("z", { metaKey: true }));
  assert.deepEqual(done, ["undo", "undo"]);
});

test("keys typed into a field are text", () => {
  for (const field of [el("input", { type: "text" }), el("textarea"), el("select")]) {
    document.body.append(field);
    assert.ok(!press("a", { target: field }));
  }
  assert.deepEqual(done, []);
  const box = el("input", { type: "checkbox" });
  document.body.append(box);
  press("a", { target: box });
  assert.deepEqual(done, ["accept"]);
});

test("nothing is decided behind an open dialog", () => {
  document.body.append(el("dialog", { open: true }));
  assert.ok(!press("a"));
  assert.deepEqual(done, []);
});

test("a focused button keeps the keys that press it", () => {
  const button = el("button", { type: "button" });
  document.body.append(button);
  assert.ok(!press(" ", { target: button }));
  assert.ok(press("a", { target: button }));
  assert.deepEqual(done, ["accept"]);
});

test("a held key acts once, and ends when it or the window is let go", () => {
  press("h");
  press("h", { repeat: true });
  release("h");
  assert.deepEqual(done, ["hide", "show"]);
  dispatchEvent(new Event("blur"));
  assert.deepEqual(done, ["hide", "show", "show"]);
});

test("a tool may take keys before the table", () => {
  firstTakes = (event) => event.key === "a";
  assert.ok(press("a"));
  assert.deepEqual(done, []);
  press("u");
  assert.deepEqual(done, ["undo"]);
});

test("help lists every binding, many keys as a range", () => {
  const dialog = helpDialog(bindings);
  assert.deepEqual([...dialog.querySelectorAll("h3")].map((title) => title.textContent), ["Decide", "Look"]);
  assert.deepEqual([...dialog.querySelectorAll("dd")].map((label) => label.textContent), ["accept", "undo", "hide", "choose"]);
  const names = [...dialog.querySelectorAll("dt")].map((keys) => keys.textContent);
  assert.deepEqual(names, ["A", "Ctrl+ZU", "HSpace", "1 – 5"]);
});

test("keys zoom and move a canvas", () => {
  const moves = [];
  const canvas = el("div");
  document.body.append(canvas);
  viewKeys(canvas, { zoom: (by) => moves.push(by), fit: () => moves.push("fit"), pan: (x, y) => moves.push([x, y]) });
  for (const key of ["+", "-", "0", "ArrowLeft"]) assert.ok(press(key, { target: canvas }));
  assert.ok(!press("+", { target: canvas, ctrlKey: true }), "the browser's zoom");
  assert.deepEqual(moves, [1.25, 0.8, "fit", [60, 0]]);
});
