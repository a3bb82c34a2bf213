/**
 * Regions as layers on an image: visible (filled, solid line), amodal (dashed line), occluded (stripes).
 *
 * @typedef {import("./rle.js").Rle} Rle
 * @typedef {import("./rle.js").Bitmap} Bitmap
 * @typedef {"visible" | "amodal" | "occluded" | "outside"} Kind  outside: visible, but not in the amodal mask
 * @typedef {{visible: boolean, amodal: boolean, occluded: boolean}} Layers
 */
import { area, subtract } from "./bitmap.js";
import { bitmapToPath } from "./contours.js";
import { colorOf, stripePattern } from "./palette.js";
import { decodeRle } from "./rle.js";

const OUTSIDE_COLOR = "#ff2d55";

/** A region to draw. Bitmaps and paths are made when they are first needed. */
export class DrawnRegion {
  /** @param {{visible?: Rle | null, amodal?: Rle | null, name?: string | null}} region @param {number} color */
  constructor(region, color) {
    this.name = region.name || `region ${color + 1}`;
    this.color = color;
    this.hidden = false;
    this.rle = { visible: region.visible ?? null, amodal: region.amodal ?? null };
    this.bitmaps = new Map();
    this.paths = new Map();
  }

  /** @param {Kind} kind @returns {Bitmap | null} null if it is unknown; `outside` also if it is empty */
  bitmap(kind) {
    if (!this.bitmaps.has(kind)) this.bitmaps.set(kind, this.#decode(kind));
    return this.bitmaps.get(kind);
  }

  #decode(kind) {
    if (kind in this.rle) return this.rle[kind] && decodeRle(this.rle[kind]);
    const [visible, amodal] = [this.bitmap("visible"), this.bitmap("amodal")];
    if (!visible || !amodal) return null;
    if (kind === "occluded") return subtract(amodal, visible);
    const outside = subtract(visible, amodal);
    return area(outside) ? outside : null;
  }

  /** @param {Kind} kind @returns {Path2D | null} */
  path(kind) {
    if (!this.paths.has(kind)) {
      const bitmap = this.bitmap(kind);
      this.paths.set(kind, bitmap && bitmapToPath(bitmap));
    }
    return this.paths.get(kind);
  }
}

/**
 * Draw regions on a context in image coordinates.
 * @param {CanvasRenderingContext2D} context @param {DrawnRegion[]} regions @param {Layers} layers
 * @param {number} scale screen pixels per image pixel @param {DrawnRegion | null} strong the region to emphasize
 */
export function drawRegions(context, regions, layers, scale, strong = null) {
  context.lineJoin = "round";
  for (const region of regions) {
    if (region.hidden) continue;
    const faint = strong && region !== strong ? 0.35 : 1;
    if (layers.occluded) drawOccluded(context, region, scale, faint);
    if (layers.visible) drawVisible(context, region, scale, faint);
    if (layers.amodal) drawAmodal(context, region, scale, faint, !layers.visible && !layers.occluded);
  }
  context.globalAlpha = 1;
}

function drawVisible(context, region, scale, strength) {
  const path = region.path("visible");
  if (!path) return;
  fill(context, path, colorOf(region.color), 0.42 * strength);
  outline(context, path, region.color, scale, strength, []);
}

function drawAmodal(context, region, scale, strength, alone) {
  const path = region.path("amodal");
  if (!path) return;
  if (alone) fill(context, path, colorOf(region.color), 0.34 * strength);
  outline(context, path, region.color, scale, strength, [7 / scale, 4.5 / scale]);
}

function drawOccluded(context, region, scale, strength) {
  const path = region.path("occluded");
  if (path) fill(context, path, stripePattern(context, region.color, scale), 0.8 * strength);
}

/** Mark the pixels of visible masks that lie outside the amodal ones, which cannot be right. */
export function drawOutside(context, regions) {
  for (const region of regions) {
    const path = region.path("outside");
    if (path) fill(context, path, OUTSIDE_COLOR, 0.9);
  }
  context.globalAlpha = 1;
}

function fill(context, path, style, alpha) {
  context.globalAlpha = alpha;
  context.fillStyle = style;
  context.fill(path, "evenodd");
}

function outline(context, path, color, scale, strength, dash) {
  context.setLineDash([]);
  context.globalAlpha = 0.6 * strength;
  context.strokeStyle = "#181818";
  context.lineWidth = 3.6 / scale;
  context.stroke(path);
  context.setLineDash(dash);
  context.globalAlpha = strength;
  context.strokeStyle = colorOf(color);
  context.lineWidth = 1.9 / scale;
  context.stroke(path);
  context.setLineDash([]);
}
