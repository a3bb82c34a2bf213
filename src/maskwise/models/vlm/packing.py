"""Questions about one image in one sequence: the image and what precedes it are read once, not once per question.

    image question-1 answer-1                     image  question-1 answer-1  question-2 answer-2
    image question-2 answer-2        becomes

A token sees what is before it in its own question and what all questions begin with. Its position is that of its
question alone, so hidden states are those of separate sequences (docs/results/vlm.md has the differences and the time).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class PackedQuestions:
    """Sequences of several questions. input_ids, mm_token_type_ids: [rows, n]. attention_mask: bool [rows, 1, n, n].
    position_ids: [3, rows, n]. image_index: the image of each row, -1 for none. places: [questions, tokens], where each
    token of the questions is in the flattened rows; padding is at place 0.
    """

    input_ids: torch.Tensor
    mm_token_type_ids: torch.Tensor
    attention_mask: torch.Tensor
    position_ids: torch.Tensor
    image_index: tuple[int, ...]
    places: torch.Tensor


def pack_questions(
    inputs: dict[str, torch.Tensor],
    position_ids: torch.Tensor,
    image_index: Sequence[int],
) -> PackedQuestions:
    """Join the questions of each image.

    inputs: of the language model, padded at the right. position_ids: [3, questions, tokens], of the questions alone.
    image_index: of each question; those without an image stay alone.
    """
    input_ids = inputs["input_ids"]
    lengths = inputs["attention_mask"].sum(1).tolist()
    groups = group_questions(image_index)
    plans = [_Plan.of(input_ids, lengths, group) for group in groups]
    size = max(plan.size for plan in plans)
    device = input_ids.device
    places = torch.zeros_like(input_ids)
    sources = torch.zeros((len(plans), size), dtype=torch.long, device=device)
    # Padding sees itself: a row of a mask without any key would give values that are not a number.
    mask = torch.eye(size, dtype=torch.bool, device=device).repeat(len(plans), 1, 1)
    width = input_ids.shape[1]
    for row, plan in enumerate(plans):
        segment = torch.zeros(plan.size, dtype=torch.long, device=device)
        start = plan.prefix
        for number, question in enumerate(plan.questions):
            length = lengths[question]
            own = length - plan.prefix
            stop = start + own
            tokens = torch.arange(length, device=device)
            moved = torch.where(
                tokens < plan.prefix, tokens, tokens - plan.prefix + start
            )
            places[question, :length] = row * size + moved
            sources[row, moved] = question * width + tokens
            segment[start:stop] = number + 1
            start = stop
        order = torch.arange(plan.size, device=device)
        causal = order[:, None] >= order[None, :]
        visible = (segment[None, :] == 0) | (segment[:, None] == segment[None, :])
        mask[row, : plan.size, : plan.size] = causal & visible
    return PackedQuestions(
        input_ids=input_ids.flatten()[sources],
        mm_token_type_ids=inputs["mm_token_type_ids"].flatten()[sources],
        attention_mask=mask.unsqueeze(1),
        position_ids=position_ids.flatten(1)[:, sources],
        image_index=tuple(image_index[group[0]] for group in groups),
        places=places,
    )


def group_questions(image_index: Sequence[int]) -> list[list[int]]:
    """The questions of each image, in order of their first; one without an image is a group of its own."""
    groups: list[list[int]] = []
    of_image: dict[int, list[int]] = {}
    for question, image in enumerate(image_index):
        if image >= 0 and image in of_image:
            of_image[image].append(question)
            continue
        group = [question]
        groups.append(group)
        of_image[image] = group
    return groups


@dataclass(frozen=True)
class _Plan:
    """Questions that share a row: the length of what they begin with, and of the row."""

    questions: list[int]
    prefix: int
    size: int

    @classmethod
    def of(
        cls, input_ids: torch.Tensor, lengths: list[int], questions: list[int]
    ) -> "_Plan":
        shortest = min(lengths[question] for question in questions)
        rows = input_ids[questions, :shortest]
        equal = (rows == rows[:1]).all(0).tolist()
        prefix = equal.index(False) if False in equal else shortest
        size = prefix + sum(lengths[question] - prefix for question in questions)
        return cls(questions, prefix, size)
