/**
 * Paint into bitmaps: discs along a stroke, polygons, enclosed areas. Each changes the bitmap it is given.
 *
 * @typedef {import("./rle.js").Bitmap} Bitmap
 * @typedef {{x: number, y: number}} Point  in pixels, from the upper left corner of the image
 */

/** Paint a stroke of a round brush. A pixel is painted if its center is inside. */
export function paintStroke(bitmap, points, diameter, value) {
  const radius = Math.max(0.5, diameter / 2);
  points.forEach((point, index) => paintCapsule(bitmap, points[Math.max(0, index - 1)], point, radius, value));
}

/** All pixels whose center is within radius of the segment from a to b. */
function paintCapsule({ width, height, data }, a, b, radius, value) {
  const [top, bottom] = [Math.max(0, Math.floor(Math.min(a.y, b.y) - radius)), Math.min(height - 1, Math.ceil(Math.max(a.y, b.y) + radius))];
  const [left, right] = [Math.max(0, Math.floor(Math.min(a.x, b.x) - radius)), Math.min(width - 1, Math.ceil(Math.max(a.x, b.x) + radius))];
  const [along, down] = [b.x - a.x, b.y - a.y];
  const length = along * along + down * down;
  for (let y = top; y <= bottom; y++) {
    for (let x = left; x <= right; x++) {
      const [px, py] = [x + 0.5 - a.x, y + 0.5 - a.y];
      const at = length ? Math.min(1, Math.max(0, (px * along + py * down) / length)) : 0;
      if ((px - at * along) ** 2 + (py - at * down) ** 2 <= radius * radius) data[y * width + x] = value;
    }
  }
}

/** Paint the inside of a polygon by the even-odd rule. A pixel is painted if its center is inside. */
export function paintPolygon({ width, height, data }, points, value) {
  for (let y = 0; y < height; y++) {
    const crossings = [];
    points.forEach((a, index) => {
      const b = points[(index + 1) % points.length];
      const level = y + 0.5;
      if (a.y <= level !== b.y <= level) crossings.push(a.x + ((level - a.y) * (b.x - a.x)) / (b.y - a.y));
    });
    crossings.sort((a, b) => a - b);
    for (let pair = 0; pair + 1 < crossings.length; pair += 2) {
      const first = Math.max(0, Math.ceil(crossings[pair] - 0.5));
      const last = Math.min(width - 1, Math.ceil(crossings[pair + 1] - 0.5) - 1);
      for (let x = first; x <= last; x++) data[y * width + x] = value;
    }
  }
}

/**
 * Fill the hole around a point, or remove the piece around it.
 * @returns {boolean} false if the hole is open: it reaches the edge of the image
 */
export function fillArea({ width, height, data }, point, value) {
  const [x, y] = [Math.floor(point.x), Math.floor(point.y)];
  if (x < 0 || y < 0 || x >= width || y >= height || data[y * width + x] === value) return true;
  const old = 1 - value;
  const area = [y * width + x];
  const seen = new Uint8Array(data.length);
  seen[area[0]] = 1;
  for (let next = 0; next < area.length; next++) {
    const at = area[next];
    const column = at % width;
    const edge = column === 0 || column === width - 1 || at < width || at >= data.length - width;
    if (edge && value === 1) return false;
    for (const other of [column > 0 ? at - 1 : -1, column < width - 1 ? at + 1 : -1, at - width, at + width]) {
      if (other < 0 || other >= data.length || seen[other] || data[other] !== old) continue;
      seen[other] = 1;
      area.push(other);
    }
  }
  for (const at of area) data[at] = value;
  return true;
}
