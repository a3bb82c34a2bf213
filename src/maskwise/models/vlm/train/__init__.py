"""Training of the vision-language model (extra `vlm`).

lora            low-rank adapters through peft
"""
