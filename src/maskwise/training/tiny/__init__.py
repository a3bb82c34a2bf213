"""Training of the bundled model (extra `train`): from rendered scenes or dataset folders to ONNX files.

config, pipeline        the settings and the stages of a run
dry_run                 what a run would do
scene_dataset           training examples from rendered scenes
annotated_dataset       training examples from a dataset folder
augment                 copy-paste augmentation and color-channel permutation
detector, roi_head      networks: backbone, feature pyramid, heatmap and box heads; attributes and first masks per box
mask_head               network: the final masks, with those of the other objects in view
grounder                network: text encoder and attention over objects
networks                the networks put together, and as inference uses them
targets, losses         detector batches and the losses of all networks
grounding_dataset       questions about detected objects, and their batches
sentence_templates      other sentences for the noun phrases of questions
validation              the strict protocol on held-out images
export                  networks to ONNX
fit_domain              the statistics of the out-of-domain detector
"""
