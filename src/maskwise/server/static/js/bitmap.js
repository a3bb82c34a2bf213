/**
 * Set operations and measures of bitmaps of one size.
 *
 * @typedef {import("./rle.js").Bitmap} Bitmap
 * @typedef {{x: number, y: number, width: number, height: number}} Box
 */

/** @param {number} width @param {number} height @returns {Bitmap} */
export const emptyBitmap = (width, height) => ({ width, height, data: new Uint8Array(width * height) });

/** @param {Bitmap} bitmap @returns {Bitmap} */
export const copyBitmap = (bitmap) => ({ ...bitmap, data: bitmap.data.slice() });

/** Pixels inside. @param {Bitmap} bitmap @returns {number} */
export function area({ data }) {
  let count = 0;
  for (let at = 0; at < data.length; at++) count += data[at];
  return count;
}

/** Pixels of a that are not in b. @param {Bitmap} a @param {Bitmap} b @returns {Bitmap} */
export const subtract = (a, b) => combine(a, b, (inA, inB) => inA & ~inB & 1);

/** Pixels of a or b. @param {Bitmap} a @param {Bitmap} b @returns {Bitmap} */
export const unite = (a, b) => combine(a, b, (inA, inB) => inA | inB);

/** The tight box; null for an empty mask. @param {Bitmap} bitmap @returns {Box | null} */
export function boundingBox({ width, height, data }) {
  let left = width;
  let right = -1;
  let top = height;
  let bottom = -1;
  for (let y = 0, at = 0; y < height; y++) {
    for (let x = 0; x < width; x++, at++) {
      if (!data[at]) continue;
      if (x < left) left = x;
      if (x > right) right = x;
      if (y < top) top = y;
      bottom = y;
    }
  }
  return right < 0 ? null : { x: left, y: top, width: right - left + 1, height: bottom - top + 1 };
}

/** @param {Bitmap} a @param {Bitmap} b @param {(a: number, b: number) => number} choose @returns {Bitmap} */
function combine(a, b, choose) {
  const data = new Uint8Array(a.data.length);
  for (let at = 0; at < data.length; at++) data[at] = choose(a.data[at], b.data[at]);
  return { ...a, data };
}
