/** The ask page: an image, questions about it, answers with masks. */
import { ApiError, getBlob, getImage, getJson, openSession, postJson, request } from "./api.js";
import { CanvasView } from "./canvas_view.js";
import { announce, byId, el } from "./dom.js";
import { AnswerEntry } from "./answer_entry.js";
import { drawRegions } from "./mask_layer.js";
import { useSignIn } from "./sign_in.js";
import { viewKeys } from "./view_keys.js";

/** Earlier questions that go with a new one: what a person may still refer to. */
const MAX_TURNS = 6;

/** Characters of an earlier answer that go along; the server refuses longer ones. */
const MAX_ANSWER = 2000;

const state = {
  /** @type {AnswerEntry[]} */ entries: [],
  /** @type {null | {id: string, width: number, height: number}} */ image: null,
  /** @type {ImageBitmap | null} */ pixels: null,
  /** @type {AnswerEntry | null} */ active: null,
  layers: { visible: true, amodal: false, occluded: false },
  pointed: /** @type {import("./mask_layer.js").DrawnRegion | null} */ (null),
  model: null,
};

const view = new CanvasView(byId("canvas"), (context, scale) => {
  if (state.active) drawRegions(context, state.active.regions, state.layers, scale, state.pointed);
});

async function start() {
  useSignIn();
  await openSession();
  const [models, examples] = await Promise.all([getJson("/v1/models"), getJson("/v1/examples")]);
  showModels(models);
  showExamples(examples);
}

function showModels(models) {
  const select = byId("model");
  select.append(...models.map((model) => el("option", { value: model.name, selected: model.default }, model.name)));
  const describe = () => {
    const line = models.find((model) => model.name === select.value)?.description ?? "";
    byId("model-line").textContent = line;
    byId("model-line").title = line;
  };
  state.model = select.value;
  describe();
  select.addEventListener("change", async () => {
    describe();
    try {
      await whileBusy(`Starting ${select.value} …`, () => postJson(`/v1/models/${encodeURIComponent(select.value)}`, {}));
      state.model = select.value;
      announce(`Model ${select.value} is ready.`);
    } catch (error) {
      showProblem(error);
      select.value = state.model;
      describe();
    }
  });
}

function showExamples(examples) {
  byId("examples").append(...examples.map((example) => {
    const thumbnail = el("canvas", { width: 320, height: 320, "aria-hidden": "true" });
    getImage(`/v1/images/${example.id}`).then((image) => drawCover(thumbnail, image));
    const question = example.questions[0];
    return el("li", {}, el("button", { type: "button", onclick: () => openExample(example), "aria-label": `Sample image: ${question}` },
      thumbnail, el("span", {}, question)));
  }));
}

function drawCover(canvas, image) {
  const side = Math.min(image.width, image.height);
  canvas.getContext("2d").drawImage(image, (image.width - side) / 2, (image.height - side) / 2, side, side, 0, 0, canvas.width, canvas.height);
}

async function openExample(example) {
  await openImage(example, "Sample image", example.questions);
}

async function upload(file) {
  try {
    const stored = await whileBusy("Uploading …", async () =>
      (await request("/v1/images", { method: "POST", body: file, type: "application/octet-stream" })).json());
    await openImage(stored, file.name, []);
  } catch (error) {
    showProblem(error);
  }
}

async function openImage(stored, name, questions) {
  state.image = { id: stored.id, width: stored.width, height: stored.height };
  state.pixels = await createImageBitmap(await getBlob(`/v1/images/${stored.id}`));
  state.active = null;
  state.entries = [];
  byId("start").hidden = true;
  byId("viewer").hidden = byId("panel").hidden = false;
  byId("warning").hidden = true;
  byId("thread").replaceChildren();
  byId("image-name").textContent = name;
  byId("image-size").textContent = `${stored.width} × ${stored.height}`;
  byId("suggestions").replaceChildren(...questions.map((text) => el("button", { type: "button", onclick: () => ask(text) }, text)));
  view.show(state.pixels, state.image);
  showLayers();
  byId("question").value = "";
  if (matchMedia("(min-width: 721px)").matches) byId("question").focus();
}

async function ask(text) {
  const question = text.trim();
  if (!question || byId("send").disabled) return;
  byId("question").value = "";
  byId("send").disabled = true;
  for (const button of byId("suggestions").children) if (button.textContent === question) button.remove();
  const entry = new AnswerEntry(question, { activate, redraw: () => view.redraw(), point, setLayers, download: () => ({ image: state.pixels, layers: state.layers, name: byId("image-name").textContent }) });
  byId("thread").append(entry.element);
  try {
    const response = await whileBusy("Looking …", () => postJson("/v1/ask", { image: state.image.id, question, model: state.model, turns: earlierTurns() }));
    showWarning(response.answer.domain_warning);
    entry.fill(response);
    state.entries.push(entry);
    activate(entry);
    announce(entry.spoken);
  } catch (error) {
    entry.fail(messageOf(error));
  } finally {
    byId("send").disabled = false;
  }
}

/** The last answered questions about the image, so that "it" can refer to them. */
function earlierTurns() {
  return state.entries.slice(-MAX_TURNS).map((entry) => ({
    question: entry.response.question,
    answer: shorten(entry.response.answer.prediction.answer?.text),
  }));
}

/** A text of at most MAX_ANSWER characters; null for none. @param {string | undefined} text @returns {string | null} */
const shorten = (text) => (text ? [...text].slice(0, MAX_ANSWER).join("") : null);

/** Show the masks of an answer. */
function activate(entry) {
  if (!entry.response) return;
  state.active?.setActive(false);
  state.active = entry;
  entry.setActive(true);
  setLayers(entry.layers());
  const reduced = matchMedia("(prefers-reduced-motion: reduce)").matches;
  entry.element.scrollIntoView({ block: "nearest", behavior: reduced ? "auto" : "smooth" });
}

function point(region) {
  state.pointed = region;
  view.redraw();
}

function setLayers(layers) {
  state.layers = layers;
  showLayers();
  view.redraw();
}

function showLayers() {
  for (const input of byId("layers").querySelectorAll("input")) {
    input.checked = state.layers[input.value];
    input.disabled = !state.active?.has(input.value);
  }
}

function showWarning(text) {
  byId("warning").hidden = !text;
  byId("warning").textContent = text ? `The model warns: ${text}` : "";
}

function showProblem(error) {
  byId("warning").hidden = false;
  byId("warning").textContent = messageOf(error);
  if (byId("panel").hidden) byId("drop").after(byId("warning"));
  announce(messageOf(error));
}

const messageOf = (error) =>
  error instanceof ApiError ? error.message : `The server cannot be reached: ${error.message}`;

async function whileBusy(text, work) {
  byId("busy-text").textContent = text;
  byId("busy").hidden = false;
  try {
    return await work();
  } finally {
    byId("busy").hidden = true;
  }
}

function closeImage() {
  byId("panel").prepend(byId("warning"));
  byId("warning").hidden = true;
  byId("panel").querySelector(".panel-head").after(byId("warning"));
  byId("start").hidden = false;
  byId("viewer").hidden = byId("panel").hidden = true;
  state.active = state.image = null;
  byId("file").value = "";
}

function listen() {
  byId("file").addEventListener("change", (event) => event.target.files[0] && upload(event.target.files[0]));
  byId("form").addEventListener("submit", (event) => {
    event.preventDefault();
    ask(byId("question").value);
  });
  byId("question").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      ask(byId("question").value);
    }
  });
  byId("other-image").addEventListener("click", closeImage);
  byId("layers").addEventListener("change", (event) =>
    setLayers({ ...state.layers, [event.target.value]: event.target.checked }));
  byId("zoom-in").addEventListener("click", () => view.zoom(1.4));
  byId("zoom-out").addEventListener("click", () => view.zoom(1 / 1.4));
  byId("zoom-fit").addEventListener("click", () => view.fit());
  viewKeys(byId("canvas"), view);
  listenToDrops();
}

function listenToDrops() {
  const stage = byId("stage");
  const mark = (over) => {
    stage.classList.toggle("over", over);
    byId("drop").classList.toggle("over", over);
  };
  stage.addEventListener("dragover", (event) => {
    event.preventDefault();
    mark(true);
  });
  stage.addEventListener("dragleave", () => mark(false));
  stage.addEventListener("drop", (event) => {
    event.preventDefault();
    mark(false);
    if (event.dataTransfer.files[0]) upload(event.dataTransfer.files[0]);
  });
  document.addEventListener("paste", (event) => event.clipboardData?.files[0] && upload(event.clipboardData.files[0]));
}

listen();
start().catch(showProblem);
