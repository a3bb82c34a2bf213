/** Run lengths: exactly those of pycocotools, which made the strings below. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { area, boundingBox, subtract, unite } from "../../src/maskwise/server/static/js/bitmap.js";
import { decodeCounts, decodeRle, encodeCounts, encodeRle } from "../../src/maskwise/server/static/js/rle.js";

const BAR = { size: [3, 4], counts: "41202" };
const RING = {
  size: [40, 50],
  counts: "T=1R1:I4L4M2N2N2O0O2OBD0;NK04ON02O0000000000O030M0100000000001N021L052E0<>1N101N2N2N3L4L7Fi:",
};

const rows = ({ width, height, data }) =>
  Array.from({ length: height }, (_, y) => Array.from(data.slice(y * width, (y + 1) * width)).join(""));

test("runs go down the columns, background first", () => {
  assert.deepEqual(decodeCounts(BAR.counts), [4, 1, 2, 1, 4]);
  assert.deepEqual(rows(decodeRle(BAR)), ["0000", "0110", "0000"]);
});

test("empty and full masks", () => {
  assert.deepEqual(rows(decodeRle({ size: [2, 2], counts: "4" })), ["00", "00"]);
  assert.deepEqual(rows(decodeRle({ size: [2, 3], counts: "06" })), ["111", "111"]);
  assert.equal(encodeRle({ width: 3, height: 2, data: new Uint8Array(6).fill(1) }).counts, "06");
  assert.equal(encodeRle({ width: 2, height: 2, data: new Uint8Array(4) }).counts, "4");
});

test("a mask with a hole has the pixels that pycocotools counts", () => {
  const ring = decodeRle(RING);
  assert.equal(area(ring), 596);
  assert.equal(ring.data[20 * 50 + 25], 0, "the hole is empty");
  assert.deepEqual(boundingBox(ring), { x: 10, y: 5, width: 31, height: 31 });
  assert.deepEqual(encodeRle(ring), RING);
});

test("run lengths of any size survive encoding", () => {
  const runs = [0, 1, 31, 32, 15, 16, 1023, 1024, 5, 1_000_000, 3];
  assert.deepEqual(decodeCounts(encodeCounts(runs)), runs);
});

test("random masks survive encoding", () => {
  let seed = 1;
  const draw = () => (seed = (seed * 48271) % 2147483647) % 3 === 0;
  for (let size = 1; size < 20; size++) {
    const data = Uint8Array.from({ length: size * (size + 3) }, () => Number(draw()));
    const bitmap = { width: size, height: size + 3, data };
    assert.deepEqual(decodeRle(encodeRle(bitmap)), bitmap);
  }
});

test("set operations leave their operands as they are", () => {
  const bar = decodeRle(BAR);
  const full = { width: 4, height: 3, data: new Uint8Array(12).fill(1) };
  assert.equal(area(subtract(full, bar)), 10);
  assert.equal(area(subtract(bar, full)), 0);
  assert.equal(area(unite(bar, full)), 12);
  assert.equal(area(bar), 2);
  assert.equal(boundingBox(subtract(bar, full)), null);
});
