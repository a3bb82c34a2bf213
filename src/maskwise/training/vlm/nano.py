"""The model in small: tiny architectures of the same classes, with random weights and a tokenizer made here."""

from typing import Any

from maskwise.models.vlm.config import LossWeights, Pretrained, VlmConfig


def nano_config(
    *,
    image_size: int = 128,
    width: int = 128,
    layers: int = 4,
    vocabulary: int = 1536,
    **options: Any,
) -> VlmConfig:
    """Qwen3-VL and SAM 2 in the size of a few million parameters. options: other fields of VlmConfig."""
    defaults: dict[str, Any] = {
        "vision_language": Pretrained(
            config=qwen3_vl_config(width, layers, vocabulary)
        ),
        "segmenter": Pretrained(
            config=sam2_config(image_size, width // 2, 3 * width // 4)
        ),
        "prompt_vectors": 2,
        "min_pixels": image_size**2,
        "max_pixels": image_size**2,
        "image_size": image_size,
        "positive_weight": 8.0,
        "max_new_tokens": 64,
        "text_length": 256,
        "scaled_init": True,
        "mask_type_head": True,
        "losses": LossWeights(
            text=2.0,
            bce=1.0,
            dice=1.0,
            region_words=1.0,
            name_prompt=1.0,
            name_alignment=1.0,
        ),
    }
    return VlmConfig(**(defaults | options))


def qwen3_vl_config(
    width: int, layers: int, vocabulary: int, *, patch: int = 16, merge: int = 1
) -> dict[str, Any]:
    """A small Qwen3-VL: `layers` in the vision tower and as many in the language model, heads of width 32."""
    heads = width // 32
    return {
        "model_type": "qwen3_vl",
        "tie_word_embeddings": True,
        "text_config": {
            "vocab_size": vocabulary,
            "hidden_size": width,
            "intermediate_size": 3 * width,
            "num_hidden_layers": layers,
            "num_attention_heads": heads,
            "num_key_value_heads": heads,
            "head_dim": 32,
            "max_position_embeddings": 4096,
            "rope_parameters": {
                "rope_type": "default",
                "rope_theta": 10000.0,
                "mrope_section": [4, 6, 6],
                "mrope_interleaved": True,
            },
            "tie_word_embeddings": True,
        },
        "vision_config": {
            "depth": layers,
            "hidden_size": width,
            "intermediate_size": 3 * width,
            "num_heads": heads,
            "patch_size": patch,
            "spatial_merge_size": merge,
            "temporal_patch_size": 1,
            "out_hidden_size": width,
            "num_position_embeddings": 64,
            "deepstack_visual_indexes": [],
        },
    }


def sam2_config(image_size: int, width: int, decoder_width: int) -> dict[str, Any]:
    """A small SAM 2: Hiera with stages of 1, 2, 3 and 1 blocks.

    SAM compares pixels with a prompt in an eighth of decoder_width dimensions, so that parts need more than objects.
    """
    stages = [width // 2, width, 2 * width, 3 * width]
    sizes = [[image_size // stride] * 2 for stride in (4, 8, 16)]
    return {
        "model_type": "sam2",
        "vision_config": {
            "backbone_config": {
                "model_type": "sam2_hiera_det_model",
                "hidden_size": stages[0],
                "image_size": [image_size, image_size],
                "blocks_per_stage": [1, 2, 3, 1],
                "embed_dim_per_stage": stages,
                "num_attention_heads_per_stage": [1, 2, 4, 6],
                "window_size_per_stage": [8, 4, 8, 4],
                "global_attention_blocks": [4, 5],
                "window_positional_embedding_background_size": [8, 8],
            },
            "backbone_channel_list": stages[::-1],
            "backbone_feature_sizes": sizes,
            "fpn_hidden_size": decoder_width,
        },
        "prompt_encoder_config": {
            "hidden_size": decoder_width,
            "image_size": image_size,
            "patch_size": 16,
        },
        "mask_decoder_config": {
            "hidden_size": decoder_width,
            "mlp_dim": 4 * width,
            "num_attention_heads": 4,
            "iou_head_hidden_dim": decoder_width,
            "num_multimask_outputs": 1,
        },
    }
