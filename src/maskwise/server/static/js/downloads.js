/** What can be saved of an answer: the image with its masks, COCO JSON with amodal fields, or plain run lengths. */
import { area, boundingBox, subtract } from "./bitmap.js";
import { el } from "./dom.js";
import { drawRegions } from "./mask_layer.js";
import { encodeRle } from "./rle.js";

/** Save a blob as a file. @param {Blob} blob @param {string} name */
export function saveBlob(blob, name) {
  const address = URL.createObjectURL(blob);
  const link = el("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

/** @param {any} content @param {string} name */
export const saveJson = (content, name) =>
  saveBlob(new Blob([JSON.stringify(content, null, 1)], { type: "application/json" }), name);

/** The image with its regions, at least 1000 pixels wide. @returns {Promise<Blob>} */
export function drawPng(image, size, regions, layers) {
  const scale = Math.max(1, Math.ceil(1000 / Math.max(size.width, size.height)));
  const canvas = new OffscreenCanvas(size.width * scale, size.height * scale);
  const context = canvas.getContext("2d");
  context.scale(scale, scale);
  context.drawImage(image, 0, 0, size.width, size.height);
  drawRegions(context, regions, layers, scale);
  return canvas.convertToBlob({ type: "image/png" });
}

/** COCO JSON with the amodal fields of COCOA-cls, as `maskwise write coco` has them. */
export function toCoco(response, fileName) {
  const { prediction } = response.answer;
  const names = [...new Set((prediction.regions ?? []).map((region) => region.name ?? "region"))];
  return {
    info: { description: response.question, model: response.model, answer: prediction.answer?.text ?? null },
    images: [{ id: 1, file_name: fileName, width: response.image.width, height: response.image.height }],
    categories: names.map((name, index) => ({ id: index + 1, name })),
    annotations: (prediction.regions ?? []).map((region, index) => toAnnotation(region, index, names)),
  };
}

function toAnnotation(region, index, names) {
  const drawn = region.drawn;
  const kind = region.amodal ? "amodal" : "visible";
  const box = boundingBox(drawn.bitmap(kind));
  const annotation = {
    id: index + 1,
    image_id: 1,
    category_id: names.indexOf(region.name ?? "region") + 1,
    iscrowd: 0,
    score: region.score ?? 1,
    segmentation: region[kind],
    segmentation_type: kind,
    bbox: box ? [box.x, box.y, box.width, box.height] : [0, 0, 0, 0],
    area: area(drawn.bitmap(kind)),
  };
  if (!region.visible || !region.amodal) return annotation;
  const hidden = subtract(drawn.bitmap("amodal"), drawn.bitmap("visible"));
  return {
    ...annotation,
    visible_mask: region.visible,
    invisible_mask: encodeRle(hidden),
    occlude_rate: annotation.area ? area(hidden) / annotation.area : 0,
  };
}

/** The masks alone, as COCO run lengths. */
export const toRle = (response) => ({
  question: response.question,
  model: response.model,
  mask_type: response.answer.prediction.mask_type ?? null,
  regions: (response.answer.prediction.regions ?? []).map(({ name, score, visible, amodal }) => ({ name, score, visible, amodal })),
});
