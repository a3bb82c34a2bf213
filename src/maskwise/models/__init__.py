"""Models: the bundled model `tiny`, the mask-type classifier, and the baselines. Only training needs torch.

tiny            the bundled model: inference on onnxruntime; `tiny.train` trains it (extra `train`)
intent          which mask type a question wants, from its words
trainers        the trainers of `maskwise train`, by name; `dry_run` is what they report in advance
vlm             a vision-language model with segmentation tokens (extra `vlm`)
training_curve  loss and validation curves, and the batches of the trainers (batch_loader)
baselines       `tiny` with one input or stage replaced, to put its metrics into proportion
"""
