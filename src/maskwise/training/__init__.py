"""Training: one loop for all models; each model supplies its tasks. Inference never imports this package.

loop            `run_training(task, schedule, folder)`: the steps of a stage; `TrainingTask`: what a model supplies
schedule        steps, learning rate, and when a stage logs, validates and saves
stage_config    the TOML table of a stage of `tiny` and `completion`
checkpoints     training state and weights as safetensors, written atomically
averaging       averaged weights (EMA)
accelerator     one process or several, mixed precision, FSDP, DeepSpeed
batch_loader    batches that depend only on their number, prepared ahead
trackers        where losses and metrics are written: JSON lines, TensorBoard
progress        how far a run is, told to whoever shows it
validation      held-out datasets and the metrics of the strict protocol
dry_run         what a run would do
config_file     TOML files to structs
trainers        the trainer that a config names
onnx_export     networks to ONNX files; half_precision stores their weights as float16

tiny/           detector, RoI head and grounder of the bundled model
completion/     the amodal completion network for photographs
vlm/            the vision-language model: stages, LoRA, several processes, Ray
intent/         the mask-type classifier, fitted without this loop (a linear model)
"""
