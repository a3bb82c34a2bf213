/**
 * A canvas that shows an image with layers, zoomed and moved by mouse, touch or keys.
 *
 * `draw(context, scale)` is called in image coordinates after the image was drawn. A pointer handler may take pointer
 * events for itself (a brush); otherwise dragging moves the image.
 */

/** Screen pixels per image pixel: single pixels are easy to hit. */
const MAX_SCALE = 40;
/** A fitted image leaves a thin edge, so that its border is visible. */
const FIT_MARGIN = 0.98;

export class CanvasView {
  /** @param {HTMLCanvasElement} canvas @param {(context: CanvasRenderingContext2D, scale: number) => void} draw */
  constructor(canvas, draw) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.draw = draw;
    this.image = null;
    this.size = { width: 1, height: 1 };
    this.place = { scale: 1, x: 0, y: 0 };
    this.fitted = true;
    this.pointers = new Map();
    /** @type {null | {down: Function, move: Function, up: Function}} takes pointer events if `down` returns true */
    this.tool = null;
    this.toolPointer = null;
    new ResizeObserver(() => this.#resize()).observe(canvas);
    this.#listen();
  }

  /** Show an image. @param {CanvasImageSource | null} image @param {{width: number, height: number}} size */
  show(image, size) {
    this.image = image;
    this.size = size;
    this.fit();
  }

  /** Show the whole image. */
  fit() {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    if (!width || !height) return;
    const scale = Math.min(width / this.size.width, height / this.size.height) * FIT_MARGIN;
    this.place = {
      scale,
      x: (width - this.size.width * scale) / 2,
      y: (height - this.size.height * scale) / 2,
    };
    this.fitted = true;
    this.redraw();
  }

  /** Zoom about a point of the canvas, by default its middle. */
  zoom(factor, x = this.canvas.clientWidth / 2, y = this.canvas.clientHeight / 2) {
    const least = 0.2 * Math.min(this.canvas.clientWidth / this.size.width, this.canvas.clientHeight / this.size.height);
    const scale = Math.min(MAX_SCALE, Math.max(least, this.place.scale * factor));
    const ratio = scale / this.place.scale;
    this.place = { scale, x: x - (x - this.place.x) * ratio, y: y - (y - this.place.y) * ratio };
    this.fitted = false;
    this.redraw();
  }

  /** Move the image by screen pixels. */
  pan(right, down) {
    this.place.x += right;
    this.place.y += down;
    this.fitted = false;
    this.redraw();
  }

  /** Draw with the next frame. */
  redraw() {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.#paint();
    });
  }

  /** The point of the image below a pointer event. @returns {{x: number, y: number}} */
  toImage(event) {
    const box = this.canvas.getBoundingClientRect();
    return {
      x: (event.clientX - box.left - this.place.x) / this.place.scale,
      y: (event.clientY - box.top - this.place.y) / this.place.scale,
    };
  }

  #paint() {
    const { context, canvas, place } = this;
    const ratio = canvas.width / Math.max(1, canvas.clientWidth);
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, canvas.width, canvas.height);
    if (!this.image) return;
    context.setTransform(ratio * place.scale, 0, 0, ratio * place.scale, ratio * place.x, ratio * place.y);
    context.imageSmoothingEnabled = place.scale < 4;
    context.imageSmoothingQuality = "high";
    context.drawImage(this.image, 0, 0, this.size.width, this.size.height);
    this.draw(context, place.scale);
  }

  #resize() {
    const ratio = window.devicePixelRatio || 1;
    this.canvas.width = Math.max(1, Math.round(this.canvas.clientWidth * ratio));
    this.canvas.height = Math.max(1, Math.round(this.canvas.clientHeight * ratio));
    if (this.fitted) this.fit();
    else this.redraw();
    this.#paint();
  }

  #listen() {
    const { canvas } = this;
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      const box = canvas.getBoundingClientRect();
      this.zoom(Math.exp(-event.deltaY * 0.0015), event.clientX - box.left, event.clientY - box.top);
    }, { passive: false });
    canvas.addEventListener("dblclick", () => !this.tool && this.fit());
    canvas.addEventListener("pointerdown", (event) => this.#down(event));
    canvas.addEventListener("pointermove", (event) => this.#move(event));
    for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, (event) => this.#up(event));
  }

  #down(event) {
    this.canvas.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    if (this.tool && event.button === 0 && this.pointers.size === 1 && this.tool.down(this.toImage(event), event)) {
      this.toolPointer = event.pointerId;
    }
  }

  #move(event) {
    if (this.toolPointer === event.pointerId) this.tool?.move(this.toImage(event), event);
    else if (this.tool?.hover) this.tool.hover(this.toImage(event), event);
    const last = this.pointers.get(event.pointerId);
    if (!last || this.toolPointer !== null) return;
    const others = [...this.pointers].filter(([id]) => id !== event.pointerId);
    if (others.length === 1) this.#pinch(last, event, others[0][1]);
    else this.pan(event.clientX - last.x, event.clientY - last.y);
    this.pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
  }

  #pinch(last, event, other) {
    const before = Math.hypot(last.x - other.x, last.y - other.y);
    const now = Math.hypot(event.clientX - other.x, event.clientY - other.y);
    const box = this.canvas.getBoundingClientRect();
    this.zoom(now / Math.max(1, before), (event.clientX + other.x) / 2 - box.left, (event.clientY + other.y) / 2 - box.top);
  }

  #up(event) {
    this.pointers.delete(event.pointerId);
    if (this.toolPointer === event.pointerId) {
      this.toolPointer = null;
      this.tool?.up(this.toImage(event), event);
    }
  }
}
