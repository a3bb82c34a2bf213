/** Decisions reach the server once and in order, whatever happens to the connection or the tab. */
import assert from "node:assert/strict";
import { beforeEach, mock, test } from "node:test";

import { clearPage, fakeServer, noConnection } from "./page.js";

const { Outbox } = await import("../../src/maskwise/server/static/js/outbox.js");

const decision = (item) => ({ id: `id-${item}`, item, verdict: "accept" });

/** A page that notes what it is told. */
function notes() {
  const said = { sent: [], refused: [], changes: 0 };
  const page = {
    sent: (made, response) => said.sent.push([made.item, response]),
    refused: (made, error) => said.refused.push([made.item, error.status]),
    changed: () => said.changes++,
  };
  return { page, said };
}

const stored = () => Object.keys(localStorage).filter((key) => key.startsWith("maskwise-review-outbox-"));

beforeEach(() => {
  clearPage();
  mock.timers.reset();
});

test("a decision is sent, confirmed and forgotten", async () => {
  const requests = fakeServer(() => ({ content: { replayed: false } }));
  const { page, said } = notes();
  const outbox = new Outbox("p", page);
  outbox.add(decision(3));
  assert.equal(stored().length, 1, "it is stored before the server answers");
  assert.ok(outbox.has(3));
  await outbox.flush();
  assert.deepEqual(said.sent, [[3, { replayed: false }]]);
  assert.deepEqual(requests.map(({ path, content }) => [path, content.id]), [["/review/api/decisions", "id-3"]]);
  assert.deepEqual(stored(), []);
  assert.ok(!outbox.has(3));
});

test("decisions are sent in their order, one at a time", async () => {
  const requests = fakeServer(() => ({}));
  const outbox = new Outbox("p", notes().page);
  for (const item of [1, 2, 3]) outbox.add(decision(item));
  await outbox.flush();
  assert.deepEqual(requests.map(({ content }) => content.item), [1, 2, 3]);
});

test("without a connection decisions wait and are sent later, under the same id", async () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  let online = false;
  const requests = fakeServer(() => (online ? {} : noConnection()));
  const { page, said } = notes();
  const outbox = new Outbox("p", page);
  outbox.add(decision(1));
  await outbox.flushed;
  assert.ok(outbox.offline);
  assert.equal(stored().length, 1);
  online = true;
  mock.timers.tick(500);
  await outbox.flushed;
  assert.ok(!outbox.offline);
  assert.deepEqual(requests.map(({ content }) => content.id), ["id-1", "id-1"]);
  assert.deepEqual(said.sent.map(([item]) => item), [1]);
});

test("a busy server is asked again, a refusal is reported and not repeated", async () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  const answers = [{ status: 503 }, { status: 409, content: { error: "not yours" } }, {}];
  const requests = fakeServer(() => answers.shift());
  const { page, said } = notes();
  const outbox = new Outbox("p", page);
  outbox.add(decision(1));
  await outbox.flushed;
  outbox.add(decision(2));
  await outbox.flushed;
  assert.deepEqual(said.refused, [[1, 409]]);
  assert.deepEqual(said.sent.map(([item]) => item), [2]);
  assert.equal(requests.length, 3);
});

test("what a closed tab left is sent by the next one, oldest first", async () => {
  fakeServer(noConnection);
  mock.timers.enable({ apis: ["setTimeout", "Date"] });
  const before = new Outbox("p", notes().page);
  before.add(decision(7));
  mock.timers.tick(10);
  before.add(decision(5));
  await before.flushed;
  mock.timers.reset();
  const requests = fakeServer(() => ({}));
  const after = new Outbox("p", notes().page);
  assert.deepEqual(after.decisions.map(({ item }) => item), [7, 5]);
  await after.flush();
  assert.deepEqual(requests.map(({ content }) => content.item), [7, 5]);
});

test("another project or reviewer does not see these decisions", async () => {
  fakeServer(noConnection);
  mock.timers.enable({ apis: ["setTimeout"] });
  const outbox = new Outbox("ada", notes().page);
  outbox.add(decision(1));
  await outbox.flushed;
  assert.deepEqual(new Outbox("bob", notes().page).decisions, []);
});

test("only what was not sent can be taken back", async () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  let answer = () => {};
  globalThis.fetch = () => new Promise((resolve) => {
    answer = () => resolve(new Response("{}"));
  });
  const outbox = new Outbox("p", notes().page);
  outbox.add(decision(1));
  assert.equal(outbox.takeBack(), null, "it is on its way");
  outbox.add(decision(2));
  assert.equal(outbox.takeBack().item, 2);
  answer();
  await outbox.flushed;
  assert.deepEqual(outbox.decisions, []);
  assert.deepEqual(stored(), []);
});

test("a full store of the browser loses no decision", async () => {
  const requests = fakeServer(() => ({}));
  const full = mock.method(Object.getPrototypeOf(localStorage), "setItem", () => {
    throw new Error("QuotaExceededError");
  });
  const outbox = new Outbox("p", notes().page);
  outbox.add(decision(1));
  await outbox.flush();
  full.mock.restore();
  assert.equal(requests.length, 1);
});
