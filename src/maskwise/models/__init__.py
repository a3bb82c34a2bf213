"""Predictors: `tiny`, `photo`, `vlm`, adapters of published models, and baselines. Training is in maskwise.training."""
