"""Training of the vision-language model (extra `vlm`).

config, pipeline        the settings and the stages of a run
sources, mixing         samples grouped by image, from several sources at given rates
augment, mirrored_text  augmentation of images with their masks and texts
freezing, lora          what a stage trains
trainer                 the training loop on accelerate
checkpoints             training state as safetensors
validation              the strict protocol on held-out questions
dry_run                 what a run would do
export                  the model of a run as one folder
"""
