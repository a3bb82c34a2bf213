"""The vision-language model with segmentation tokens (extra `vlm`)."""
