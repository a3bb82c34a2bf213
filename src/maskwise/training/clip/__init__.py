"""CLIP's networks, defined again to export the authors' checkpoint as ONNX files.

network         the image and the text network of ViT-B/32
weights_export  checkpoint to ONNX, compared with torch
"""
