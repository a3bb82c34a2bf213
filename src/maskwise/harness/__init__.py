"""Run models on datasets and score their predictions."""
