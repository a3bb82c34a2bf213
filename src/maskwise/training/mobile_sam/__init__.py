"""MobileSAM in torch, to make the two ONNX files of the model `photo` from the authors' checkpoint.

tiny_vit         the image encoder
mask_decoder     the prompt encoder and the mask decoder, with the inputs and outputs of segment-anything's ONNX decoder
weights_export   from the checkpoint to verified ONNX files
"""
