/** Colors of regions: Okabe and Ito, "Color Universal Design" (2008), without black; the same as in reports. */

export const PALETTE = ["#e69f00", "#56b4e9", "#009e73", "#f0e442", "#0072b2", "#d55e00", "#cc79a7"];

/** @param {number} index @returns {string} */
export const colorOf = (index) => PALETTE[index % PALETTE.length];

const stripes = new Map();

/** Stripes of a color, the same width on screen at every zoom. */
export function stripePattern(context, index, scale) {
  const color = colorOf(index);
  if (!stripes.has(color)) {
    const tile = new OffscreenCanvas(12, 12);
    const drawing = tile.getContext("2d");
    drawing.fillStyle = "rgba(250, 250, 250, 0.3)";
    drawing.fillRect(0, 0, 12, 12);
    drawing.strokeStyle = color;
    drawing.lineWidth = 4.5;
    for (const shift of [-12, 0, 12]) {
      drawing.beginPath();
      drawing.moveTo(shift - 3, 15);
      drawing.lineTo(shift + 15, -3);
      drawing.stroke();
    }
    stripes.set(color, tile);
  }
  const pattern = context.createPattern(stripes.get(color), "repeat");
  pattern.setTransform(new DOMMatrix().scale(1 / scale));
  return pattern;
}
