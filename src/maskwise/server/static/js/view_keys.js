/** Keys that zoom and move a canvas: plus, minus, 0 and the arrows. */

/** Screen pixels that an arrow key moves the image. */
const STEP = 60;
const ACTIONS = {
  "+": (view) => view.zoom(1.25),
  "=": (view) => view.zoom(1.25),
  "-": (view) => view.zoom(0.8),
  0: (view) => view.fit(),
  ArrowLeft: (view) => view.pan(STEP, 0),
  ArrowRight: (view) => view.pan(-STEP, 0),
  ArrowUp: (view) => view.pan(0, STEP),
  ArrowDown: (view) => view.pan(0, -STEP),
};

/** @param {HTMLElement} element that receives the keys @param {import("./canvas_view.js").CanvasView} view */
export function viewKeys(element, view) {
  element.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !ACTIONS[event.key]) return;
    event.preventDefault();
    ACTIONS[event.key](view);
  });
}
