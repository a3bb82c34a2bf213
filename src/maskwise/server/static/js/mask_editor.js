/**
 * The mask tools: brush, eraser, polygon, fill and click-to-refine. A tool paints into a copy of the mask and hands it
 * over; the page decides what becomes of it.
 *
 * @typedef {import("./painting.js").Point} Point
 * @typedef {import("./rle.js").Bitmap} Bitmap
 * @typedef {{bitmap: () => Bitmap, color: () => string, commit: (bitmap: Bitmap) => void, say: (text: string) => void,
 *   refine: (points: any[]) => Promise<void>, redraw: () => void}} Page
 */
import { copyBitmap } from "./bitmap.js";
import { fillArea, paintPolygon, paintStroke } from "./painting.js";

export const TOOLS = ["brush", "eraser", "polygon", "fill", "refine"];
const MAX_SIZE = 400;

export class MaskEditor {
  /** @param {import("./canvas_view.js").CanvasView} view @param {Page} page */
  constructor(view, page) {
    this.view = view;
    this.page = page;
    this.tool = null;
    this.size = 12;
    this.clear();
  }

  /** Forget what was begun. */
  clear() {
    /** @type {Point[]} */ this.points = [];
    this.clicks = [];
    /** @type {Point | null} */ this.cursor = null;
  }

  /** @param {string | null} tool one of TOOLS, null to look only */
  choose(tool) {
    this.tool = tool;
    this.clear();
    this.view.tool = tool && { down: (p, e) => this.#down(p, e), move: (p) => this.#move(p), up: () => this.#up(), hover: (p) => this.#hover(p) };
    this.view.canvas.dataset.tool = tool ?? "";
    this.page.redraw();
  }

  /** @param {number} factor */
  resize(factor) {
    this.size = Math.min(MAX_SIZE, Math.max(1, Math.round(factor > 1 ? Math.max(this.size + 1, this.size * factor) : Math.min(this.size - 1, this.size * factor))));
    this.page.redraw();
  }

  /** Keys of the tool: arrows move a cursor, space applies the tool there, enter closes a polygon. @returns {boolean} used */
  key(event) {
    if (!this.tool) return false;
    const step = event.shiftKey ? 10 : 1;
    const moves = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, -step], ArrowDown: [0, step] };
    if (moves[event.key]) this.#moveCursor(...moves[event.key]);
    else if (event.key === " ") this.#apply(event);
    else if (event.key === "Enter" && this.tool === "polygon") this.#closePolygon(event.shiftKey);
    else if (event.key === "Backspace" && this.points.length) this.points.pop();
    else return false;
    this.page.redraw();
    return true;
  }

  /** Draw what is begun, on a context in image coordinates. */
  draw(context, scale) {
    if (!this.tool) return;
    const color = this.tool === "eraser" ? "#ffffff" : this.page.color();
    if (this.tool === "polygon") this.#drawPolygon(context, scale, color);
    else if (this.points.length) this.#drawStroke(context, color);
    if (this.cursor) this.#drawCursor(context, scale);
    for (const click of this.clicks) dot(context, click, 5 / scale, click.positive ? "#2ecc71" : "#e74c3c");
  }

  #down(point, event) {
    this.cursor = point;
    if (this.tool === "polygon") return this.#polygonPoint(point, event);
    if (this.tool === "fill" || this.tool === "refine") {
      this.#apply(event);
      return true;
    }
    this.points = [point];
    this.page.redraw();
    return true;
  }

  #polygonPoint(point, event) {
    const [first] = this.points;
    const near = first && Math.hypot(first.x - point.x, first.y - point.y) * this.view.place.scale < 10;
    if (event.detail > 1 || (near && this.points.length > 2)) this.#closePolygon(event.shiftKey);
    else this.points.push(point);
    this.page.redraw();
    return true;
  }

  #move(point) {
    this.cursor = point;
    if (this.tool === "brush" || this.tool === "eraser") this.points.push(point);
    this.page.redraw();
  }

  #hover(point) {
    this.cursor = point;
    this.page.redraw();
  }

  #up() {
    if ((this.tool === "brush" || this.tool === "eraser") && this.points.length) this.#paint(this.points);
    if (this.tool !== "polygon") this.points = [];
  }

  #moveCursor(right, down) {
    const { width, height } = this.view.size;
    const from = this.cursor ?? { x: width / 2, y: height / 2 };
    this.cursor = { x: Math.min(width, Math.max(0, from.x + right)), y: Math.min(height, Math.max(0, from.y + down)) };
  }

  /** Use the tool at the cursor. */
  #apply(event) {
    if (!this.cursor) return;
    if (this.tool === "polygon") this.points.push(this.cursor);
    else if (this.tool === "fill") this.#fill(event.shiftKey || event.altKey ? 0 : 1);
    else if (this.tool === "refine") this.#refine(!(event.shiftKey || event.altKey));
    else this.#paint([this.cursor]);
  }

  #paint(points) {
    const bitmap = copyBitmap(this.page.bitmap());
    paintStroke(bitmap, points, this.size, this.tool === "brush" ? 1 : 0);
    this.page.commit(bitmap);
  }

  #closePolygon(remove) {
    if (this.points.length > 2) {
      const bitmap = copyBitmap(this.page.bitmap());
      paintPolygon(bitmap, this.points, remove ? 0 : 1);
      this.page.commit(bitmap);
    }
    this.points = [];
  }

  #fill(value) {
    const bitmap = copyBitmap(this.page.bitmap());
    if (fillArea(bitmap, this.cursor, value)) this.page.commit(bitmap);
    else this.page.say("This area is open: it reaches the edge of the image. Close its outline first.");
  }

  #refine(positive) {
    this.clicks.push({ ...this.cursor, positive });
    this.page.refine(this.clicks);
  }

  #drawStroke(context, color) {
    context.globalAlpha = 0.6;
    context.strokeStyle = color;
    context.lineWidth = this.size;
    context.lineCap = context.lineJoin = "round";
    trace(context, this.points);
    context.lineTo(this.points.at(-1).x + 0.01, this.points.at(-1).y);
    context.stroke();
    context.globalAlpha = 1;
  }

  #drawPolygon(context, scale, color) {
    if (!this.points.length) return;
    context.strokeStyle = color;
    context.lineWidth = 2 / scale;
    trace(context, this.cursor ? [...this.points, this.cursor] : this.points);
    context.stroke();
    for (const point of this.points) dot(context, point, 4 / scale, color);
  }

  #drawCursor(context, scale) {
    const round = this.tool === "brush" || this.tool === "eraser";
    for (const [color, width] of [["#000000", 3], ["#ffffff", 1.4]]) {
      context.strokeStyle = color;
      context.lineWidth = width / scale;
      context.beginPath();
      if (round) context.arc(this.cursor.x, this.cursor.y, this.size / 2, 0, 7);
      else cross(context, this.cursor, 9 / scale);
      context.stroke();
    }
  }
}

function trace(context, points) {
  context.beginPath();
  points.forEach(({ x, y }, index) => (index ? context.lineTo(x, y) : context.moveTo(x, y)));
}

function cross(context, { x, y }, arm) {
  context.moveTo(x - arm, y);
  context.lineTo(x + arm, y);
  context.moveTo(x, y - arm);
  context.lineTo(x, y + arm);
}

function dot(context, { x, y }, radius, color) {
  context.beginPath();
  context.arc(x, y, radius, 0, 7);
  context.fillStyle = color;
  context.fill();
  context.strokeStyle = "#181818";
  context.lineWidth = radius / 3;
  context.stroke();
}
