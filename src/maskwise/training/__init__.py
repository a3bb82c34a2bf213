"""Training: one package per trainer (`tiny`, `completion`, `vlm`, `intent`). Inference never imports it."""
