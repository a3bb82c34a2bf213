"""LoRA: what is trained, and that merged adapters give the same outputs."""

import pytest

torch = pytest.importorskip("torch", reason="the extra `vlm` is not installed")
transformers = pytest.importorskip(
    "transformers", reason="the extra `vlm` is not installed"
)
pytest.importorskip("peft", reason="the extra `vlm` is not installed")

from maskwise.errors import MaskwiseError
from maskwise.training.vlm.lora import LoraSettings, add_lora, merge_lora


@pytest.fixture(params=[True, False], ids=["tied", "untied"])
def language_model(request):
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2}
    config = transformers.Qwen2Config(
        **sizes, **heads, vocab_size=64, tie_word_embeddings=request.param
    )
    return transformers.Qwen2ForCausalLM(config)


SETTINGS = LoraSettings(rank=4, targets=r"model\.layers\.\d+\.(self_attn|mlp)\..*_proj")


def test_only_adapters_and_rows_of_the_given_tokens_are_trained(language_model) -> None:
    tied = language_model.lm_head.weight is language_model.model.embed_tokens.weight
    add_lora(language_model, SETTINGS, [60, 61])
    trained = {
        name: p.numel()
        for name, p in language_model.named_parameters()
        if p.requires_grad
    }
    rows = {name: count for name, count in trained.items() if "lora_" not in name}
    assert sum(rows.values()) == 2 * 32 * (1 if tied else 2)
    assert len(trained) - len(rows) == 2 * 2 * 7, (
        "A and B of seven layers in each of two blocks"
    )


def test_merged_adapters_give_the_same_logits(language_model) -> None:
    adapted = add_lora(language_model, SETTINGS, [60, 61])
    with torch.no_grad():
        for parameter in language_model.parameters():
            if parameter.requires_grad:
                parameter.add_(0.1 * torch.randn_like(parameter))
    language_model.eval()  # the dropout of new adapters is active
    tokens = torch.tensor([[3, 60, 7, 61, 9]])
    with torch.no_grad():
        before = language_model(input_ids=tokens).logits
        merged = merge_lora(adapted)
        after = merged(input_ids=tokens).logits
    assert not any("lora_" in name for name, _ in merged.named_parameters())
    torch.testing.assert_close(after, before, atol=1e-4, rtol=1e-4)


def test_targets_that_match_nothing_are_refused_with_names_of_layers(
    language_model,
) -> None:
    with pytest.raises(
        MaskwiseError, match=r"no layer .* matches lora.targets 'nothing'.*q_proj"
    ):
        add_lora(language_model, LoraSettings(targets="nothing"))
    with pytest.raises(ValueError, match="not a regular expression"):
        LoraSettings(targets="(")
