"""The mask-type head: the words of a question choose between the two segmentation tokens."""

import msgspec
import pytest

torch = pytest.importorskip("torch", reason="the extra `vlm` is not installed")
pytest.importorskip("transformers", reason="the extra `vlm` is not installed")

from maskwise.models.vlm.batch import ImageQuestions, collate
from maskwise.models.vlm.config import LossWeights
from maskwise.models.vlm.generation import encode_image, generate_answers
from maskwise.models.vlm.mask_type_head import MaskTypeHead, shift_mask_type
from tests.models.vlm.small import scene_questions, small_config, small_model


def test_a_shift_moves_probability_between_the_two_tokens_only():
    logits = torch.randn(2, 7, generator=torch.Generator().manual_seed(0))
    before = logits.softmax(1)
    after = shift_mask_type(logits, torch.tensor([3.0, -40.0]), (5, 2)).softmax(1)
    others = [0, 1, 3, 4, 6]
    assert torch.allclose(after[:, others], before[:, others], atol=1e-6)
    assert (after[0, 2] / after[0, 5]).log() == pytest.approx(
        (before[0, 2] / before[0, 5]).log().item() + 3, abs=1e-4
    )
    assert after[1, 2] < 1e-6


def test_padding_and_other_tokens_do_not_matter():
    torch.manual_seed(0)
    head = MaskTypeHead(20, 8)
    table = torch.randn(20, 8)
    torch.nn.init.normal_(head.corrections)
    words = torch.tensor([[7, 3, 9, 4]])
    alone = head(words, table[words], torch.ones(1, 4, dtype=torch.bool))
    padded = torch.tensor([[1, 0, 5, 7, 3, 9, 4, 11, 2]])
    asked = torch.tensor([[False] * 3 + [True] * 4 + [False] * 2])
    assert torch.allclose(head(padded, table[padded], asked), alone, atol=1e-6)


def test_only_the_words_of_the_question_are_read():
    model, processor = small_model()
    one = scene_questions(0)
    with_answers = collate([one], processor)
    prompts = collate([one], processor, answers=False)
    without_image = collate([ImageQuestions(None, one.samples)], processor)
    found = [
        model.mask_type_log_odds(batch)
        for batch in (with_answers, prompts, without_image)
    ]
    assert torch.allclose(found[0], found[1], atol=1e-6)
    assert torch.allclose(found[0], found[2], atol=1e-6)
    words = [
        processor.decode(ids[asked])
        for ids, asked in zip(prompts.input_ids, prompts.asked)
    ]
    assert words == [sample.question for sample in one.samples]


def test_the_mask_type_loss_is_that_of_the_choice_and_of_the_head_alone():
    model, processor = small_model()
    model.config = msgspec.structs.replace(
        model.config, losses=LossWeights(text=0, mask_type=1, bce=0, dice=0)
    )
    batch = collate([ImageQuestions(None, scene_questions(0).samples)], processor)
    states = model.vision_language.encode_text(
        batch.text_inputs(), None, batch.image_index
    )
    rows, places = (
        torch.isin(batch.input_ids, torch.tensor(processor.seg_token_ids)).nonzero().T
    )
    pair = model.vision_language.logits(states[rows, places - 1])[
        :, list(processor.seg_token_ids)
    ]
    head = model.mask_type_log_odds(batch)[rows]
    sign = (batch.input_ids[rows, places] == processor.seg_token_ids[1]).float() * 2 - 1
    choice = torch.nn.functional.logsigmoid(sign * (pair[:, 1] - pair[:, 0] + head))
    alone = torch.nn.functional.logsigmoid(sign * head)
    assert model(batch).loss.item() == pytest.approx(
        -(choice.mean() + alone.mean()).item(), rel=1e-4
    )


@pytest.mark.parametrize(("log_odds", "kind"), [(80.0, 1), (-80.0, 0)])
def test_generation_writes_the_token_that_the_head_asks_for(log_odds: float, kind: int):
    model, processor = small_model()
    visible, amodal = processor.seg_token_ids
    with torch.no_grad():
        # Either token is more likely than any word, and the head decides between them.
        embeddings = model.vision_language.embeddings
        embeddings[amodal] = embeddings[visible]
        model.mask_type_head.score.bias.fill_(log_odds)
        original = model.vision_language.model.lm_head.forward
        boost = torch.zeros(len(embeddings))
        boost[[visible, amodal]] = 100.0
        model.vision_language.model.lm_head.forward = lambda states: (
            original(states) + boost
        )
    one = scene_questions(0)
    image = encode_image(model, processor, one.image)
    (answer,) = generate_answers(model, processor, image, [one.samples[0].question])
    assert answer.kinds
    assert set(answer.kinds) == {kind}


def test_the_head_is_off_where_it_is_not_wanted():
    model, processor = small_model(small_config(mask_type_head=False))
    assert model.mask_type_log_odds(collate([scene_questions(0)], processor)) is None
    assert not [
        name
        for name, _ in model.named_parameters()
        if name.startswith("mask_type_head")
    ]
