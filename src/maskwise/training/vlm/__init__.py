"""Training of the vision-language model (extra `vlm`).

config, pipeline        the settings and the stages of a run
stage_task              batches, loss and optimizer of a stage, for the loop of all models
sources, mixing         samples grouped by image, from several sources at given rates
augment, mirrored_text  augmentation of images with their masks and texts
paraphrase              questions of the world in other words
freezing, lora          what a stage trains
optimizers              AdamW, with Muon for weight matrices if wanted
validation              the strict protocol on held-out questions
dry_run                 what a run would do
export                  the model of a run as one folder
nano, nano_tokenizer    the model in small, and a tokenizer trained on the world's texts
"""
