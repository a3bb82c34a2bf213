"""What TRL samples and scores is shifted by the mask-type head as in prediction."""

import pytest

torch = pytest.importorskip("torch", reason="the extra `vlm` is not installed")
pytest.importorskip("trl", reason="the extra `grpo` is not installed")

from trl.trainer.utils import add_fused_lm_head

from maskwise.models.vlm.batch import IGNORED, VlmBatch, collate
from maskwise.models.vlm.generation import encode_image, write_answers
from maskwise.models.vlm.mask_type_head import shift_mask_type
from maskwise.models.vlm.model import VlmModel
from maskwise.models.vlm.processor import VlmProcessor
from maskwise.training.vlm.head_in_sampling import mask_type_head_in_sampling
from tests.models.vlm.small import scene_questions, small_config, small_model

pytestmark = pytest.mark.vlm


def decided_model() -> tuple[VlmModel, VlmProcessor]:
    """A model whose head has something to say: its random scores are of either sign."""
    model, processor = small_model()
    head = model.mask_type_head
    assert head is not None
    with torch.no_grad():
        head.score.weight.mul_(20.0)
    return model, processor


@torch.inference_mode()
@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_log_probabilities_are_those_of_shifted_logits(temperature: float) -> None:
    model, processor = decided_model()
    item = scene_questions(1)
    prompts = collate([item], processor, answers=False)
    answers = torch.full((len(prompts), 3), processor.eos_token_id)
    answers[:, 0] = torch.tensor(processor.name_tokens("mug")[0])
    answers[:, 1] = torch.tensor(processor.seg_token_ids)[
        torch.arange(len(prompts)) % 2
    ]
    inputs = prompts.text_inputs() | {"pixel_values": _pixels(prompts)}
    inputs["input_ids"] = torch.cat([prompts.input_ids, answers], 1)
    inputs["attention_mask"] = torch.cat(
        [prompts.attention_mask, torch.ones_like(answers)], 1
    )
    inputs["mm_token_type_ids"] = torch.cat(
        [prompts.mm_token_type_ids, torch.zeros_like(answers)], 1
    )
    labels = inputs["input_ids"].clone()
    labels[:, :-3] = IGNORED
    language = model.vision_language.model
    logits = language(**inputs).logits[:, -4:-1]
    log_odds = model.mask_type_log_odds(prompts)
    expected = []
    for place in range(3):
        shifted = shift_mask_type(logits[:, place], log_odds, processor.seg_token_ids)
        scores = (shifted / temperature).log_softmax(1)
        expected.append(scores.gather(1, answers[:, place, None])[:, 0])
    add_fused_lm_head(language, temperature=temperature)
    plain = language(**inputs, labels=labels, fused_lm_head=True).log_probs
    with mask_type_head_in_sampling(model, processor, temperature):
        output = language(**inputs, labels=labels, fused_lm_head=True)
    torch.testing.assert_close(output.log_probs[:, -3:], torch.stack(expected, 1))
    assert not torch.allclose(plain[:, -2], output.log_probs[:, -2])


@torch.inference_mode()
def test_sampled_tokens_are_those_of_prediction() -> None:
    model, processor = decided_model()
    visible, amodal = processor.seg_token_ids
    item = scene_questions(0, 6)
    prompts = collate([item], processor, answers=False)
    language = model.vision_language.model
    original = language.lm_head.forward
    boost = torch.zeros(language.lm_head.out_features)
    # Either token is more likely than any word, so that the head decides what is written.
    boost[[visible, amodal]] = 100.0
    language.lm_head.forward = lambda states: original(states) + boost
    image = encode_image(model, processor, item.image)
    expected, _ = write_answers(
        model.vision_language,
        processor,
        prompts,
        features=image.language,
        mask_type_log_odds=model.mask_type_log_odds(prompts),
    )
    options = {"do_sample": False, "max_new_tokens": 3}
    inputs = prompts.text_inputs() | {"pixel_values": _pixels(prompts)}
    with mask_type_head_in_sampling(model, processor, 0.5):
        written = language.generate(**inputs, **options)
    start = prompts.input_ids.shape[1]
    assert written[:, start:].tolist() == [answer[:3] for answer in expected]
    assert {token for answer in expected for token in answer} == {visible, amodal}


def test_nothing_is_changed_without_a_head() -> None:
    model, processor = small_model(small_config(mask_type_head=False))
    language = model.vision_language.model
    with mask_type_head_in_sampling(model, processor, 1.0):
        assert not language._forward_hooks


def _pixels(batch: VlmBatch) -> torch.Tensor:
    """The pixels of the only image of a batch, once per question, as TRL passes them."""
    assert batch.pixel_values is not None
    return batch.pixel_values.repeat(len(batch), 1)
