/**
 * A browser page for tests, without a browser. Import this module before the scripts of the pages, which read the
 * address and the storage of their page when they are loaded.
 */
import { JSDOM } from "jsdom";

const { window } = new JSDOM("<!DOCTYPE html><body></body>", { url: "http://localhost/review" });

for (const name of ["document", "location", "history", "localStorage", "sessionStorage", "KeyboardEvent", "Event"]) {
  Object.defineProperty(globalThis, name, { value: window[name], configurable: true });
}
globalThis.addEventListener = window.addEventListener.bind(window);
globalThis.dispatchEvent = window.dispatchEvent.bind(window);

/** Forget what scripts left on the page. */
export function clearPage() {
  document.body.replaceChildren();
  localStorage.clear();
  sessionStorage.clear();
}

/** Press a key on an element, by default on the body. @returns {boolean} whether a script took the key */
export function press(key, { target = document.body, ...options } = {}) {
  return !target.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...options }));
}

/** Let go of a key. */
export function release(key) {
  document.body.dispatchEvent(new KeyboardEvent("keyup", { key, bubbles: true }));
}

/**
 * Answer requests with a function instead of a server.
 * @param {(path: string, options: any) => {status?: number, content?: any}} answer throws where there is no connection
 * @returns {{path: string, method: string, headers: any, content: any}[]} the requests, as they come in
 */
export function fakeServer(answer) {
  const requests = [];
  globalThis.fetch = (path, { method = "GET", headers = {}, body } = {}) => {
    const content = body === undefined ? undefined : JSON.parse(body);
    requests.push({ path, method, headers, content });
    try {
      const { status = 200, content: said = {} } = answer(path, { method, headers, content });
      return Promise.resolve(new Response(JSON.stringify(said), { status }));
    } catch (error) {
      return Promise.reject(error);
    }
  };
  return requests;
}

/** What `fetch` throws without a connection. */
export const noConnection = () => {
  throw new TypeError("Failed to fetch");
};
