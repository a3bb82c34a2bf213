"""Models that people already use, as predictors: one file each (docs/adapters.md, extra `vlm`).

    load_model("sam3", checkpoint="facebook/sam3")      concepts in words to instance masks

A checkpoint is a folder, or a hub name whose files were downloaded before.

sam3    SAM 3 of transformers
"""
