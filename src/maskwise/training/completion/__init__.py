"""Training of the completion network: `maskwise train configs/completion.toml`.

config          the settings of a run
composites      images with occluded objects whose amodal masks are known, made by `occlude` and encoded by MobileSAM
covered_pairs   cut-outs pasted over any object, without MobileSAM
neighbours      what may be in front of an object: annotated objects and pieces of the image
batches         examples drawn from these images, with augmentation
network         the network in torch
losses          what training minimises
validation      metrics on held-out composites
pipeline        from datasets to the ONNX file
"""
