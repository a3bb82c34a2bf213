/** Service worker of the review page: keeps the page and the images it has shown, so that it can be reloaded offline. */

const CACHE = "maskwise-review";
const IMAGES = /^\/review\/api\/images\//;
const FILES = /^\/(review$|review\/judge$|review\/owner$|static\/)/;
/** Images kept for reloads without a connection; more than a reviewer holds. */
const MAX_ENTRIES = 120;

addEventListener("install", () => skipWaiting());
addEventListener("activate", (event) => event.waitUntil(clients.claim()));
addEventListener("fetch", (event) => {
  const { pathname, origin } = new URL(event.request.url);
  if (event.request.method !== "GET" || origin !== location.origin) return;
  if (FILES.test(pathname) || IMAGES.test(pathname)) event.respondWith(fetchOrRecall(event.request));
});

/** The response of the server, or the last one that it gave. */
async function fetchOrRecall(request) {
  const cache = await caches.open(CACHE);
  try {
    const response = await fetch(request);
    if (response.ok) await keep(cache, request, response.clone());
    return response;
  } catch (error) {
    const known = await cache.match(request, { ignoreVary: true });
    if (known) return known;
    throw error;
  }
}

async function keep(cache, request, response) {
  await cache.put(request, response);
  const images = (await cache.keys()).filter(({ url }) => IMAGES.test(new URL(url).pathname));
  for (const old of images.slice(0, Math.max(0, images.length - MAX_ENTRIES))) await cache.delete(old);
}
