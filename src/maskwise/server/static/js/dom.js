/** Elements from data. Text is always text: nothing here, or anywhere on these pages, parses HTML. */

/**
 * An element. Properties beginning with `on` are event listeners; `class`, `for`, `role`, `aria-*` and `data-*` are
 * attributes; everything else is a property. Children are elements, texts, or null, which is left out.
 */
export function el(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (/^(class|for|role|aria-|data-)/.test(name)) element.setAttribute(name, value);
    else element[name] = value;
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/** The element of an id, which has to exist. */
export function byId(id) {
  const element = document.getElementById(id);
  if (!element) throw new Error(`no element #${id}`);
  return element;
}

/** A colored square for legends. */
export function swatch(color) {
  const square = el("span", { class: "swatch", "aria-hidden": "true" });
  square.style.background = color;
  return square;
}

/** Say something to screen readers. @param {string} text */
export function announce(text) {
  const region = document.getElementById("announcer");
  if (region) region.textContent = text;
}

/** Percent without decimals, or a dash. */
export const percent = (value) => (value === null || value === undefined ? "–" : `${Math.round(100 * value)} %`);

/** Seconds for people. */
export const seconds = (value) => (value < 1 ? `${Math.round(1000 * value)} ms` : `${value.toFixed(1)} s`);
