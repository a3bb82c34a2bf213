"""maskwise inside the tools that people use.

lmms_eval          a folder of tasks for lmms-eval, scored by our protocols
published_results  a run as results of the Hugging Face hub, as a model card, and as Every Eval Ever JSON
trackers           training curves and metrics in Weights & Biases, MLflow, Trackio and TensorBoard
maskwise_worker    one file to copy beside a model in an older Python environment
"""
