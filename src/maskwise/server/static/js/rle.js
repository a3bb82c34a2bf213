/**
 * COCO run lengths: decode to bitmaps and encode again, exactly as pycocotools and maskwise do.
 *
 * @typedef {{size: [number, number], counts: string}} Rle  size: height and width
 * @typedef {{width: number, height: number, data: Uint8Array}} Bitmap  data: 0 or 1 per pixel, row by row
 */

/** Run lengths of a compressed string, background first. @param {string} counts @returns {number[]} */
export function decodeCounts(counts) {
  const runs = [];
  let place = 0;
  while (place < counts.length) {
    let value = 0;
    let shift = 0;
    let sign = 0;
    do {
      sign = counts.charCodeAt(place++) - 48;
      value |= (sign & 31) << shift;
      shift += 5;
    } while (sign & 32 && place < counts.length);
    if (sign & 16 && shift < 32) value |= -1 << shift;
    runs.push(runs.length > 2 ? value + runs[runs.length - 2] : value);
  }
  return runs;
}

/** A compressed string of run lengths. @param {number[]} runs @returns {string} */
export function encodeCounts(runs) {
  let text = "";
  runs.forEach((run, index) => {
    let value = index > 2 ? run - runs[index - 2] : run;
    let more = true;
    while (more) {
      let sign = value & 31;
      value >>= 5;
      more = sign & 16 ? value !== -1 : value !== 0;
      if (more) sign |= 32;
      text += String.fromCharCode(sign + 48);
    }
  });
  return text;
}

/** @param {Rle} rle @returns {Bitmap} */
export function decodeRle(rle) {
  const [height, width] = rle.size;
  const data = new Uint8Array(width * height);
  let place = 0;
  decodeCounts(rle.counts).forEach((run, index) => {
    if (index % 2) {
      for (let end = place + run, at = place; at < end; at++) data[(at % height) * width + Math.floor(at / height)] = 1;
    }
    place += run;
  });
  return { width, height, data };
}

/** @param {Bitmap} bitmap @returns {Rle} */
export function encodeRle({ width, height, data }) {
  const runs = [];
  let value = 0;
  let length = 0;
  for (let x = 0; x < width; x++) {
    for (let y = 0, at = x; y < height; y++, at += width) {
      if (data[at] !== value) {
        runs.push(length);
        value = data[at];
        length = 0;
      }
      length++;
    }
  }
  runs.push(length);
  return { size: [height, width], counts: encodeCounts(runs) };
}
