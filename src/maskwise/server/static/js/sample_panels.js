/** The regions of a sample and of predictions, drawn on the image of a card or of the enlarged sample. */
import { DrawnRegion, drawRegions } from "./mask_layer.js";

/** @returns {DrawnRegion[]} */
export const groundTruthRegions = (sample) => (sample.targets ?? []).map((region, index) => new DrawnRegion(region, index));

/** A predicted region has the color of its matched target. @returns {DrawnRegion[]} */
export const predictedRegions = ({ prediction, colors }) =>
  (prediction?.regions ?? []).map((region, index) => new DrawnRegion(region, colors[index]));

/** Draw an image with its regions into a canvas of fixed size. size: of the masks, which may be larger than the image. */
export function drawPanel(canvas, image, size, regions, layers) {
  const context = canvas.getContext("2d");
  const scale = Math.min(canvas.width / size.width, canvas.height / size.height);
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.clearRect(0, 0, canvas.width, canvas.height);
  context.setTransform(scale, 0, 0, scale, (canvas.width - size.width * scale) / 2, (canvas.height - size.height * scale) / 2);
  context.imageSmoothingQuality = "high";
  context.drawImage(image, 0, 0, size.width, size.height);
  drawRegions(context, regions, layers, scale);
}
