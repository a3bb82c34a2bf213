/**
 * Requests to the server. The token comes from the address (`#token=...`), from this tab's storage, from the server
 * itself where it serves this machine alone, or from the person who signs in.
 */

const STORED = "maskwise-token";

export class ApiError extends Error {
  /** @param {number} status @param {string} message @param {any} content */
  constructor(status, message, content = null) {
    super(message);
    this.status = status;
    this.content = content;
  }
}

let token = takeToken();
let askForToken = () => null;

/** What to do where the server wants a token: a function that returns one, or null. */
export const onTokenNeeded = (ask) => (askForToken = ask);

/** The token of this page, if it has one. */
export const currentToken = () => token;

/** Keep a token for this tab. @param {string | null} given */
export function setToken(given) {
  token = given;
  if (given) sessionStorage.setItem(STORED, given);
  else sessionStorage.removeItem(STORED);
}

/** Take the token out of the address, so that it is not copied or bookmarked with it. */
function takeToken() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given) {
    sessionStorage.setItem(STORED, given);
    history.replaceState(null, "", location.pathname + location.search);
  }
  return given ?? sessionStorage.getItem(STORED);
}

/** The response to a request; ApiError if it is refused, TypeError if there is no connection. */
export async function request(path, { method = "GET", body, type, signal } = {}) {
  const response = await send(path, { method, body, type, signal });
  if (response.status !== 401) return checked(response);
  const given = await askForToken();
  if (!given) return checked(response);
  setToken(given);
  return checked(await send(path, { method, body, type, signal }));
}

function send(path, { method, body, type, signal }) {
  const headers = {};
  if (token) headers.Authorization = `Bearer ${token}`;
  if (type) headers["Content-Type"] = type;
  return fetch(path, { method, body, headers, signal, credentials: "omit", cache: "default" });
}

async function checked(response) {
  if (response.ok) return response;
  let content = null;
  try {
    content = await response.json();
  } catch {
    // The message below says enough.
  }
  throw new ApiError(response.status, content?.error ?? `the server answered with status ${response.status}`, content);
}

export const getJson = async (path, options) => (await request(path, options)).json();
export const getBlob = async (path, options) => (await request(path, options)).blob();
export const postJson = async (path, content, options = {}) =>
  (await request(path, { method: "POST", body: JSON.stringify(content), type: "application/json", ...options })).json();

/** An image, decoded. @returns {Promise<ImageBitmap>} */
export const getImage = async (path, options) => createImageBitmap(await getBlob(path, options));

/** The token for writing, where this server gives it to its own pages. */
export async function openSession() {
  const session = await getJson("/v1/session");
  setToken(session.token);
}
