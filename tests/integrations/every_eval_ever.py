"""The schema of Every Eval Ever, as far as our records use it: required fields, types and choices.

Written down from the description of its version 0.3.0 (github.com/evaleval/every_eval_ever).
"""

from typing import Any

TEXT = {"type": "string"}
NUMBER = {"type": "number"}
COUNT = {"type": "integer"}
TEXTS = {"type": "object", "additionalProperties": TEXT}


def record(required: dict[str, Any], optional: dict[str, Any]) -> dict[str, Any]:
    """An object with these fields and no others."""
    return {
        "type": "object",
        "required": list(required),
        "properties": required | optional,
        "additionalProperties": False,
    }


MODEL_DETAILS = {
    "type": "object",
    "required": ["deployment_type", "model_availability"],
    "additionalProperties": TEXT,
}
CONFIDENCE_INTERVAL = record(
    {"lower": NUMBER, "upper": NUMBER},
    {
        "confidence_level": {"type": "number", "minimum": 0, "maximum": 1},
        "method": TEXT,
    },
)
RESULT = record(
    {
        "evaluation_name": TEXT,
        "source_data": record(
            {
                "dataset_name": TEXT,
                "source_type": {"const": "hf_dataset"},
                "hf_repo": TEXT,
            },
            {"samples_number": COUNT},
        ),
        "metric_config": record(
            {"lower_is_better": {"type": "boolean"}},
            {
                "evaluation_description": TEXT,
                "metric_id": TEXT,
                "metric_name": TEXT,
                "metric_unit": TEXT,
                "score_type": {"enum": ["binary", "continuous", "levels"]},
                "min_score": NUMBER,
                "max_score": NUMBER,
            },
        ),
        "score_details": record(
            {"score": NUMBER},
            {
                "details": TEXTS,
                "uncertainty": record(
                    {},
                    {"confidence_interval": CONFIDENCE_INTERVAL, "num_samples": COUNT},
                ),
            },
        ),
    },
    {},
)
SCHEMA = record(
    {
        "schema_version": TEXT,
        "evaluation_id": TEXT,
        "retrieved_timestamp": TEXT,
        "source_metadata": record(
            {
                "source_type": {"enum": ["documentation", "evaluation_run"]},
                "source_organization_name": TEXT,
                "evaluator_relationship": {
                    "enum": ["first_party", "third_party", "collaborative", "other"]
                },
            },
            {},
        ),
        "eval_library": record({"name": TEXT, "version": TEXT}, {}),
        "model_info": record(
            {"name": TEXT, "id": TEXT, "additional_details": MODEL_DETAILS}, {}
        ),
        "evaluation_results": {"type": "array", "items": RESULT, "minItems": 1},
    },
    {},
)
