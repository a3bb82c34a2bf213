"""Models that people already use, as predictors: one file each (docs/guides/published_models.md, extra `vlm`).

    load_model("sam3", checkpoint="facebook/sam3")                  noun phrases to instance masks
    load_model("visionreasoner", checkpoint="VisionReasoner-7B")    thinks, then boxes and points to masks
    load_model("sa2va", checkpoint="Sa2VA-Qwen3-VL-4B")             answers with [SEG] tokens to masks

A checkpoint is a folder, or a hub name whose files were downloaded before; of Sa2VA it is a folder.

sam3              SAM 3 of transformers
visionreasoner    VisionReasoner: Qwen2.5-VL and SAM 2
sa2va             Sa2VA: Qwen-VL and SAM 2 in one checkpoint
qwen_sam2         what the last two share
catalog           what `maskwise adapters` prints
"""
