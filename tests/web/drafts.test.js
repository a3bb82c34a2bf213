/** Edits survive a reload and a lost connection; items continue where they were. */
import assert from "node:assert/strict";
import { beforeEach, mock, test } from "node:test";

import { clearPage, fakeServer, noConnection } from "./page.js";

const { ApiError, currentToken, getJson, onTokenNeeded, setToken } = await import("../../src/maskwise/server/static/js/api.js");
const { Drafts } = await import("../../src/maskwise/server/static/js/drafts.js");
const { call, isOffline, openReview } = await import("../../src/maskwise/server/static/js/review_api.js");
const { makeUuid } = await import("../../src/maskwise/server/static/js/uuid.js");

const settled = () => new Promise((resolve) => {
  setImmediate(resolve);
});

beforeEach(() => {
  clearPage();
  mock.timers.reset();
  setToken(null);
});

test("a draft is kept at once and sent when nothing changes for a moment", async () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  const requests = fakeServer(() => ({ content: { saved: "now" } }));
  const states = [];
  const drafts = new Drafts("p", (state) => states.push(state));
  drafts.save(3, { note: "a" });
  mock.timers.tick(600);
  drafts.save(3, { note: "ab" });
  assert.deepEqual(drafts.find(3), { note: "ab" });
  mock.timers.tick(600);
  assert.equal(requests.length, 0, "somebody is still typing");
  mock.timers.tick(200);
  await settled();
  assert.deepEqual(requests.map(({ method, path, content }) => [method, path, content]), [["PUT", "/review/api/items/3/draft", { note: "ab" }]]);
  assert.deepEqual(states, ["saving", "saving", "saved"]);
});

test("a draft that cannot be sent is tried again", async () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  let online = false;
  const requests = fakeServer(() => (online ? {} : noConnection()));
  const states = [];
  const drafts = new Drafts("p", (state) => states.push(state));
  drafts.save(3, { note: "a" });
  mock.timers.tick(700);
  await settled();
  assert.equal(states.at(-1), "local");
  online = true;
  mock.timers.tick(3500);
  await settled();
  assert.equal(requests.length, 2);
  assert.equal(states.at(-1), "saved");
});

test("the draft of a decided item is not sent any more", async () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  const requests = fakeServer(() => ({}));
  const drafts = new Drafts("p", () => {});
  drafts.save(3, { note: "a" });
  drafts.forget(3);
  mock.timers.tick(10_000);
  await settled();
  assert.equal(drafts.find(3), null);
  assert.deepEqual(requests, []);
});

test("changes carry the header against CSRF, reading does not", async () => {
  const requests = fakeServer(() => ({ content: { csrf: "secret", reviewer: "ada" } }));
  const { session, online, byLink } = await openReview();
  assert.deepEqual([session.reviewer, online, byLink], ["ada", true, false]);
  await call("POST", "/queue", { count: 1 });
  assert.deepEqual(requests.map(({ headers }) => headers["X-CSRF-Token"]), [undefined, "secret"]);
});

test("the token of a personal link is exchanged and forgotten", async () => {
  setToken("from-the-link");
  const requests = fakeServer(() => ({ content: { csrf: "c" } }));
  assert.ok((await openReview()).byLink);
  assert.deepEqual(requests[0].content, { token: "from-the-link" });
  assert.equal(currentToken(), null);
  assert.equal(sessionStorage.length, 0);
});

test("without a connection the page opens as last time, if there was one", async () => {
  fakeServer(noConnection);
  await assert.rejects(openReview(), TypeError);
  fakeServer(() => ({ content: { csrf: "c", reviewer: "ada" } }));
  await openReview();
  fakeServer(noConnection);
  const { session, online } = await openReview();
  assert.deepEqual([session.reviewer, online], ["ada", false]);
  fakeServer(() => ({ status: 401, content: { error: "open your personal link" } }));
  await assert.rejects(openReview(), /personal link/, "a refusal is not a lost connection");
});

test("what is worth trying again", () => {
  assert.ok(isOffline(new TypeError("Failed to fetch")));
  assert.ok(isOffline(new ApiError(503, "busy")));
  assert.ok(!isOffline(new ApiError(409, "not yours")));
  assert.ok(!isOffline(new ApiError(422, "invalid")));
});

test("a token is asked for once and sent from then on", async () => {
  const requests = fakeServer((path, { headers }) => (headers.Authorization === "Bearer right" ? { content: [1] } : { status: 401, content: { error: "expected a token" } }));
  onTokenNeeded(() => null);
  await assert.rejects(getJson("/v1/models"), /expected a token/);
  onTokenNeeded(() => Promise.resolve("right"));
  assert.deepEqual(await getJson("/v1/models"), [1]);
  assert.deepEqual(await getJson("/v1/models"), [1]);
  assert.equal(requests.length, 4);
  onTokenNeeded(() => null);
});

test("ids are random UUIDs of version 4", () => {
  const ids = Array.from({ length: 50 }, makeUuid);
  assert.equal(new Set(ids).size, 50);
  for (const id of ids) assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
});

test("a draft that is refused after its item was decided says nothing", async () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  fakeServer(() => ({ status: 403, content: { error: "item 3 is not yours" } }));
  const states = [];
  const drafts = new Drafts("p", (state) => states.push(state));
  drafts.save(3, { note: "a" });
  mock.timers.tick(700);
  drafts.forget(3);
  await settled();
  assert.deepEqual(states, ["saving"]);
});
