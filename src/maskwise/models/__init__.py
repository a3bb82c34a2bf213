"""Models: the bundled one, how it is taught, and the controls beside it. Only training needs torch.

tiny            the bundled model on onnxruntime: see, answer, predict
intent          which mask type a question wants, from its words
controls        the same model with something taken away, or told a part of the truth
training        the run that makes its weights (extra `train`)
"""
