"""Tiny architectures of the supported families, as transformers configs."""

from typing import Any

from maskwise.training.vlm.nano import qwen3_vl_config, sam2_config

WIDTH = 64
VOCABULARY = 640
IMAGE = 64

TEXT: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": WIDTH,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "max_position_embeddings": 1024,
}
MROPE = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [4, 6, 6]}

VISION_LANGUAGE: dict[str, dict[str, Any]] = {
    "qwen2_vl": {
        "model_type": "qwen2_vl",
        "text_config": TEXT | {"rope_parameters": MROPE},
        "vision_config": {
            "depth": 2,
            "embed_dim": WIDTH,
            "hidden_size": WIDTH,
            "num_heads": 2,
            "mlp_ratio": 2,
            "patch_size": 16,
            "spatial_merge_size": 2,
        },
    },
    "qwen2_5_vl": {
        "model_type": "qwen2_5_vl",
        "text_config": TEXT | {"rope_parameters": MROPE},
        "vision_config": {
            "depth": 2,
            "hidden_size": WIDTH,
            "out_hidden_size": WIDTH,
            "intermediate_size": 128,
            "num_heads": 2,
            "patch_size": 16,
            "spatial_merge_size": 2,
            "window_size": 64,
            "fullatt_block_indexes": [1],
        },
    },
    "qwen3_vl": qwen3_vl_config(WIDTH, 2, VOCABULARY, patch=8, merge=2),
    "llava": {
        "model_type": "llava",
        "text_config": TEXT | {"model_type": "llama"},
        "vision_config": {
            "model_type": "clip_vision_model",
            "hidden_size": WIDTH,
            "intermediate_size": 128,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "image_size": IMAGE,
            "patch_size": 16,
            "projection_dim": WIDTH,
        },
    },
}

DECODER = {
    "hidden_size": 32,
    "mlp_dim": 64,
    "num_attention_heads": 2,
    "iou_head_hidden_dim": 32,
    "num_hidden_layers": 2,
}

SEGMENTERS: dict[str, dict[str, Any]] = {
    "sam": {
        "model_type": "sam",
        "vision_config": {
            "hidden_size": 32,
            "output_channels": 32,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "image_size": IMAGE,
            "patch_size": 16,
            "window_size": 2,
            "global_attn_indexes": [1],
            "mlp_dim": 64,
            "num_pos_feats": 16,
        },
        "prompt_encoder_config": {
            "hidden_size": 32,
            "image_size": IMAGE,
            "patch_size": 16,
        },
        "mask_decoder_config": DECODER,
    },
    "sam2": sam2_config(IMAGE, 32, 32),
    "sam3_tracker": {
        "model_type": "sam3_tracker",
        "vision_config": {
            "model_type": "sam3_vision_model",
            "backbone_config": {
                "model_type": "sam3_vit_model",
                "hidden_size": 32,
                "intermediate_size": 64,
                "num_hidden_layers": 2,
                "num_attention_heads": 2,
                "image_size": IMAGE,
                "pretrain_image_size": IMAGE,
                "patch_size": 16,
                "window_size": 2,
                "global_attn_indexes": [1],
            },
            "fpn_hidden_size": 32,
            "backbone_feature_sizes": [[16, 16], [8, 8], [4, 4]],
        },
        "prompt_encoder_config": {
            "hidden_size": 32,
            "image_size": IMAGE,
            "patch_size": 16,
        },
        "mask_decoder_config": DECODER,
    },
}
