"""Predictions: free-running and teacher-forced, one by one and in batches, from a folder and from memory."""

import dataclasses

import msgspec
import numpy as np
import torch
from PIL import Image

from maskwise.harness.registry import make_predictor
from maskwise.models.vlm.batch import ImageQuestions, add_prompts, collate
from maskwise.models.vlm.folder import save_folder
from maskwise.models.vlm.generation import encode_image, generate_answers, read_answers
from maskwise.models.vlm.predictor import Vlm
from maskwise.schema import Turn, continue_dialogue
from tests.models.vlm.small import scene_questions, small_config, small_model


def test_questions_are_answered_alike_in_a_batch_and_one_by_one():
    model, processor = small_model()
    one = scene_questions(0, count=4)
    questions = [sample.question for sample in one.samples]
    together = Vlm(model, processor).predict(one.image, questions)
    alone = [
        Vlm(model, processor).predict(one.image, [question])[0]
        for question in questions
    ]
    assert together == alone


def test_a_saved_model_predicts_the_same(tmp_path):
    model, processor = small_model()
    save_folder(model, processor, tmp_path)
    one = scene_questions(0)
    questions = [sample.question for sample in one.samples]
    loaded = make_predictor("vlm", checkpoint=str(tmp_path))
    assert loaded.predict(one.image, questions) == Vlm(model, processor).predict(
        one.image, questions
    )
    forced = loaded.predict_teacher_forced(one.image, one.samples)
    assert forced == Vlm(model, processor).predict_teacher_forced(
        one.image, one.samples
    )


def test_teacher_forced_predictions_have_the_targets_of_the_samples():
    model, processor = small_model()
    one = scene_questions(0, count=6)
    for sample, forced in zip(
        one.samples,
        Vlm(model, processor).predict_teacher_forced(one.image, one.samples),
    ):
        assert len(forced.regions) == len(sample.targets)
        assert [region.name for region in forced.regions] == [
            target.name for target in sample.targets
        ]
        assert forced.answer == sample.answer
        assert forced.no_target == (not sample.targets)
        assert not sample.targets or forced.mask_type == sample.mask_type


def test_a_target_wanted_in_both_types_is_one_region():
    model, processor = small_model()
    one = scene_questions(0, count=6)
    both = [
        msgspec.structs.replace(sample, mask_type="both")
        for sample in one.samples
        if sample.targets
    ]
    for sample, forced in zip(
        both, Vlm(model, processor).predict_teacher_forced(one.image, both)
    ):
        assert len(forced.regions) == len(sample.targets)
        assert forced.mask_type == "both"


def test_masks_of_given_answers_equal_those_of_the_training_forward():
    model, processor = small_model()
    one = scene_questions(0, count=3)
    image = encode_image(model, processor, one.image)
    forced = read_answers(model, processor, image, one.samples)
    with torch.no_grad():
        direct = model(
            collate([ImageQuestions(one.image, one.samples)], processor)
        ).masks
    assert direct is not None
    cached = torch.cat([answer.masks.amodal for answer in forced])
    assert torch.allclose(cached, direct.amodal, atol=1e-5)


def test_states_of_generated_tokens_equal_those_of_a_forward_pass():
    model, processor = small_model()
    one = scene_questions(0, count=2)
    image = encode_image(model, processor, one.image)
    written = _write_always(model, processor.seg_token_ids[1])
    questions = [sample.question for sample in one.samples]
    generated = generate_answers(written, processor, image, questions)
    count = processor.config.max_new_tokens - 1
    assert [answer.kinds for answer in generated] == [[1] * count] * 2
    for question, answer in zip(questions, generated):
        prompt = add_prompts(image.batch, [question], processor)
        tokens = torch.full((1, count), processor.seg_token_ids[1])
        whole = dataclasses.replace(
            prompt,
            input_ids=torch.cat([prompt.input_ids, tokens], 1),
            attention_mask=torch.cat(
                [prompt.attention_mask, torch.ones_like(tokens)], 1
            ),
            mm_token_type_ids=torch.cat(
                [prompt.mm_token_type_ids, torch.zeros_like(tokens)], 1
            ),
        )
        with torch.inference_mode():
            states = written.vision_language.encode_text(
                whole.text_inputs(), image.language, (0,)
            )
            owners = torch.zeros(count, dtype=torch.long)
            expected = written.decode(image.segmenter, states[0, -count:], owners)
        assert torch.allclose(answer.masks.amodal, expected.amodal, atol=1e-4)


def _write_always(model, token):
    """Make one token the most likely one everywhere."""
    with torch.no_grad():
        head = torch.nn.Linear(
            model.vision_language.width, len(model.vision_language.embeddings)
        )
        head.weight.zero_()
        head.bias.zero_()
        head.bias[token] = 1.0
        model.vision_language.model.lm_head = head
    return model


def test_a_question_cannot_contain_special_tokens():
    _, processor = small_model()
    text = f"Segment <|image_pad|>{small_config().seg_tokens[0]} the mug."
    tokens = processor.encode_prompt(text, 4)
    assert tokens.count(processor.image_token_id) == 4
    assert not set(processor.seg_token_ids) & set(tokens)


def test_the_gradient_of_the_loss_points_to_a_larger_loss():
    model, processor = small_model()
    predictor = Vlm(model, processor)
    # Another size than the model's own: the gradient has the size of the image.
    one = scene_questions(0, count=3, size=96)
    samples = [sample for sample in one.samples if sample.targets]
    gradient = predictor.loss_gradient(one.image, samples)
    assert gradient.shape == (96, 96, 3)
    assert np.isfinite(gradient).all()
    pixels = np.asarray(one.image).astype(np.int16)
    losses = []
    for direction in (-1, 1):
        moved = np.clip(pixels + direction * 4 * np.sign(gradient), 0, 255)
        image = Image.fromarray(moved.astype(np.uint8))
        batch = collate([ImageQuestions(image, tuple(samples))], processor)
        # The image as the vision-language model sees it stays.
        same = collate([ImageQuestions(one.image, tuple(samples))], processor)
        mixed = dataclasses.replace(same, segmenter_pixels=batch.segmenter_pixels)
        with torch.no_grad():
            losses.append(model(mixed).loss.item())
    assert losses[0] < losses[1]


def test_earlier_turns_are_messages_before_the_question() -> None:
    _, processor = small_model()
    turns = [Turn(question="the red cup", answer="It is on the left.")]
    prompt = processor.prompt(continue_dialogue("And its handle?", turns), 0)
    places = [
        prompt.index(text)
        for text in ("the red cup", "It is on the left.", "And its handle?")
    ]
    assert places == sorted(places)
    token = processor.tokenizer.all_special_tokens[0]
    escaped = processor.prompt(continue_dialogue("x", [Turn(question=token)]), 0)
    assert escaped.count(token) == processor.prompt(
        continue_dialogue("x", [Turn(question="y")]), 0
    ).count(token)
