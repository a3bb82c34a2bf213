/**
 * Requests of the review page: a cookie says who asks, a header proves that this page asks (docs/reference/review_api.md).
 */
import { ApiError, currentToken, setToken } from "./api.js";

const ROOT = "/review/api";
const SESSION = "maskwise-review-session";
let csrf = null;

/** The response to a request as JSON; ApiError if it is refused, TypeError without a connection. */
export async function call(method, path, content) {
  const headers = {};
  if (content !== undefined) headers["Content-Type"] = "application/json";
  if (method !== "GET" && csrf) headers["X-CSRF-Token"] = csrf;
  const body = content === undefined ? undefined : JSON.stringify(content);
  const response = await fetch(ROOT + path, { method, headers, body, credentials: "same-origin" });
  const text = await response.text();
  const answer = text ? parse(text) : null;
  if (response.ok) return answer;
  throw new ApiError(response.status, answer?.error ?? `the server answered with status ${response.status}`, answer);
}

function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** Who is asking: by the token of the personal link (byLink), the cookie of an earlier visit, or, offline, as last time. */
export async function openReview() {
  try {
    const token = currentToken();
    const session = token ? await call("POST", "/session", { token }) : await call("GET", "/session");
    setToken(null);
    localStorage.setItem(SESSION, JSON.stringify(session));
    csrf = session.csrf;
    return { session, online: true, byLink: Boolean(token) };
  } catch (error) {
    const known = localStorage.getItem(SESSION);
    if (error instanceof ApiError || !known) throw error;
    const session = JSON.parse(known);
    csrf = session.csrf;
    return { session, online: false, byLink: false };
  }
}

/** Whether an error means that there is no connection, so that trying again later makes sense. */
export const isOffline = (error) => !(error instanceof ApiError) || error.status === 503 || error.status === 502;

/** An image of an item, decoded. @param {string} url @returns {Promise<ImageBitmap>} */
export async function loadImage(url) {
  const response = await fetch(url, { credentials: "same-origin" });
  if (!response.ok) throw new ApiError(response.status, `the image cannot be loaded (status ${response.status})`);
  return createImageBitmap(await response.blob());
}
