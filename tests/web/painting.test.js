/** Painting changes exactly the pixels whose centers are inside. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { area, emptyBitmap } from "../../src/maskwise/server/static/js/bitmap.js";
import { simplify, traceRings } from "../../src/maskwise/server/static/js/contours.js";
import { fillArea, paintPolygon, paintStroke } from "../../src/maskwise/server/static/js/painting.js";

const rows = ({ width, height, data }) =>
  Array.from({ length: height }, (_, y) => Array.from(data.slice(y * width, (y + 1) * width)).join(""));

const square = [{ x: 1, y: 1 }, { x: 4, y: 1 }, { x: 4, y: 4 }, { x: 1, y: 4 }];

test("the smallest brush paints one pixel", () => {
  const bitmap = emptyBitmap(3, 3);
  paintStroke(bitmap, [{ x: 1.5, y: 1.5 }], 1, 1);
  assert.deepEqual(rows(bitmap), ["000", "010", "000"]);
});

test("a stroke joins its points, also where the pointer is fast", () => {
  const bitmap = emptyBitmap(5, 3);
  paintStroke(bitmap, [{ x: 0.5, y: 1.5 }, { x: 4.5, y: 1.5 }], 1, 1);
  assert.deepEqual(rows(bitmap), ["00000", "11111", "00000"]);
});

test("the eraser is the brush with 0", () => {
  const bitmap = emptyBitmap(3, 3);
  bitmap.data.fill(1);
  paintStroke(bitmap, [{ x: 1.5, y: 1.5 }], 1, 0);
  assert.deepEqual(rows(bitmap), ["111", "101", "111"]);
});

test("a brush at the edge stays inside the image", () => {
  const bitmap = emptyBitmap(4, 4);
  paintStroke(bitmap, [{ x: -1, y: -1 }, { x: 0.5, y: 0.5 }], 2, 1);
  assert.equal(bitmap.data[0], 1);
  assert.equal(bitmap.data[15], 0);
});

test("a polygon is filled by pixel centers", () => {
  const bitmap = emptyBitmap(5, 5);
  paintPolygon(bitmap, square, 1);
  assert.deepEqual(rows(bitmap), ["00000", "01110", "01110", "01110", "00000"]);
});

test("a hole is filled, open background is not", () => {
  const bitmap = emptyBitmap(5, 5);
  paintPolygon(bitmap, square, 1);
  bitmap.data[2 * 5 + 2] = 0;
  assert.equal(fillArea(bitmap, { x: 0.5, y: 0.5 }, 1), false, "it reaches the edge of the image");
  assert.equal(area(bitmap), 8);
  assert.equal(fillArea(bitmap, { x: 2.5, y: 2.5 }, 1), true);
  assert.equal(area(bitmap), 9);
});

test("filling with 0 removes one piece and leaves the others", () => {
  const bitmap = emptyBitmap(5, 1);
  bitmap.data.set([1, 1, 0, 1, 1]);
  assert.equal(fillArea(bitmap, { x: 0.5, y: 0.5 }, 0), true);
  assert.deepEqual(rows(bitmap), ["00011"]);
});

test("outlines follow pixel edges; pixels that touch at a corner stay apart", () => {
  const bitmap = emptyBitmap(2, 2);
  bitmap.data.set([1, 0, 0, 1]);
  const rings = traceRings(bitmap);
  assert.equal(rings.length, 2);
  assert.deepEqual(rings[0], [[0, 0], [1, 0], [1, 1], [0, 1]]);
  assert.deepEqual(traceRings(emptyBitmap(2, 2)), []);
});

test("simplifying keeps corners and drops steps within the tolerance", () => {
  const steps = [[0, 0], [10, 0], [10, 5], [9.8, 5], [9.8, 10], [0, 10]];
  const simple = simplify(steps, 0.75);
  assert.deepEqual(simple, [[0, 0], [10, 0], [9.8, 10], [0, 10]]);
});
