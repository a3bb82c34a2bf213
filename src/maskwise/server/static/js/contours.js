/**
 * Outlines of bitmaps as paths: traced along pixel edges, then simplified so that slanted edges are smooth.
 *
 * @typedef {import("./rle.js").Bitmap} Bitmap
 * @typedef {[number, number][]} Ring  corners in pixels
 */
import { boundingBox } from "./bitmap.js";

/** Right, down, left, up, as (x, y). */
const STEPS = [[1, 0], [0, 1], [-1, 0], [0, -1]];

/** A path to fill with the even-odd rule. @param {Bitmap} bitmap @param {number} tolerance @returns {Path2D} */
export function bitmapToPath(bitmap, tolerance = 0.75) {
  const path = new Path2D();
  for (const ring of traceRings(bitmap)) {
    const points = tolerance ? simplify(ring, tolerance) : ring;
    points.forEach(([x, y], index) => (index ? path.lineTo(x, y) : path.moveTo(x, y)));
    path.closePath();
  }
  return path;
}

/** The closed outlines of a mask, only their corners. @param {Bitmap} bitmap @returns {Ring[]} */
export function traceRings(bitmap) {
  const box = boundingBox(bitmap);
  if (!box) return [];
  const columns = box.width + 1;
  const edges = collectEdges(bitmap, box, columns);
  const rings = [];
  for (let start = 0; start < edges.length; start++) {
    while (edges[start]) rings.push(followRing(edges, start, columns, box));
  }
  return rings;
}

/** Bit d of a corner: an outline leaves it in direction STEPS[d], the inside on its right. */
function collectEdges({ width, height, data }, box, columns) {
  const edges = new Uint8Array(columns * (box.height + 1));
  const inside = (x, y) => x >= 0 && y >= 0 && x < width && y < height && data[y * width + x];
  for (let y = box.y; y < box.y + box.height; y++) {
    for (let x = box.x; x < box.x + box.width; x++) {
      if (!data[y * width + x]) continue;
      const corner = (y - box.y) * columns + x - box.x;
      if (!inside(x, y - 1)) edges[corner] |= 1;
      if (!inside(x + 1, y)) edges[corner + 1] |= 2;
      if (!inside(x, y + 1)) edges[corner + columns + 1] |= 4;
      if (!inside(x - 1, y)) edges[corner + columns] |= 8;
    }
  }
  return edges;
}

function followRing(edges, start, columns, box) {
  const ring = [];
  let corner = start;
  let direction = [0, 1, 2, 3].find((way) => edges[corner] & (1 << way));
  let last = -1;
  do {
    if (direction !== last) ring.push([(corner % columns) + box.x, Math.floor(corner / columns) + box.y]);
    edges[corner] &= ~(1 << direction);
    corner += STEPS[direction][0] + STEPS[direction][1] * columns;
    last = direction;
    // Right turns first, so that pixels that touch at a corner stay apart.
    direction = [1, 0, 3, 2].map((turn) => (last + turn) % 4).find((way) => edges[corner] & (1 << way));
  } while (direction !== undefined);
  return ring;
}

/** Fewer points, none of those left out further away than the tolerance (Douglas, Peucker 1973). */
export function simplify(ring, tolerance) {
  if (ring.length < 5) return ring;
  const far = farthest(ring, ([x, y]) => (x - ring[0][0]) ** 2 + (y - ring[0][1]) ** 2);
  const closed = [...ring, ring[0]];
  const keep = new Uint8Array(closed.length);
  keep[0] = keep[far] = keep[ring.length] = 1;
  const spans = [[0, far], [far, ring.length]];
  while (spans.length) {
    const [first, last] = spans.pop();
    let worst = 0;
    let middle = -1;
    for (let at = first + 1; at < last; at++) {
      const away = distance(closed[at], closed[first], closed[last]);
      if (away > worst) [worst, middle] = [away, at];
    }
    if (worst > tolerance) {
      keep[middle] = 1;
      spans.push([first, middle], [middle, last]);
    }
  }
  const simple = ring.filter((_, index) => keep[index]);
  return simple.length > 2 ? simple : ring;
}

function farthest(points, measure) {
  let best = 0;
  points.forEach((point, index) => {
    if (measure(point) > measure(points[best])) best = index;
  });
  return best;
}

function distance([x, y], [x1, y1], [x2, y2]) {
  const [right, down] = [x2 - x1, y2 - y1];
  const length = Math.hypot(right, down);
  return length ? Math.abs(right * (y - y1) - down * (x - x1)) / length : Math.hypot(x - x1, y - y1);
}
