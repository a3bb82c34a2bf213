"""Questions say what they mean: every one is executed again, pixel by pixel, without the package's own evaluation."""

import re
from collections import Counter

import numpy as np
import pytest

from maskwise.world import Scene, SceneQuestion, make_scene
from maskwise.world.catalogue import (
    AFFORDANCES,
    CATEGORIES,
    HELD_OUT,
    PART_AFFORDANCES,
    SUPERCATEGORIES,
)
from maskwise.world.grammar import QUESTION_TYPES
from maskwise.world.logical_forms import (
    Beside,
    HasAffordance,
    HasCategory,
    HasColor,
    HasMaterial,
    HasSupercategory,
    LogicalForm,
    ObjectQuery,
    OccludedBy,
    Occludes,
    PartAffordanceQuery,
    PartNameQuery,
    PartQuery,
    Predicate,
    UnionQuery,
    Unoccluded,
)
from maskwise.world.question_templates import FAMILIES


class Eye:
    """Judges forms from the dense masks alone, each predicate written a second time."""

    def __init__(self, made: Scene) -> None:
        self.nodes = made.nodes
        self.objects = made.graph.objects()
        self.visible, self.amodal = made.dense

    def column(self, place: int, kind: str) -> float:
        masks = (
            self.visible
            if kind == "visible" and self.visible[place].any()
            else self.amodal
        )
        return float(np.nonzero(masks[place])[1].mean()) / masks.shape[2]

    def cover(self, front: int, back: int) -> float:
        return (self.visible[front] & self.amodal[back]).sum() / self.amodal[back].sum()

    def holds(self, predicate: Predicate, place: int) -> bool:
        node = self.nodes[place]
        match predicate:
            case HasCategory(category=category):
                return node.category == category
            case HasSupercategory(kind=kind):
                return node.category in SUPERCATEGORIES[kind].yes
            case HasAffordance(use=use):
                return node.category in AFFORDANCES[use].yes
            case HasColor(color=color):
                return node.color == color
            case HasMaterial(material=material):
                return node.material == material
            case Beside(side=side, other=other):
                (reference,) = self.execute(other)
                steps = [
                    self.column(place, kind) - self.column(reference, kind)
                    for kind in ("visible", "amodal")
                ]
                return place != reference and (
                    max(steps) < 0 if side == "left" else min(steps) > 0
                )
            case OccludedBy(other=None):
                return (
                    self.amodal[place] & ~self.visible[place]
                ).sum() > 0.02 * self.amodal[place].sum()
            case OccludedBy(other=other):
                (reference,) = self.execute(other)
                return place != reference and self.cover(reference, place) > 0.02
            case Occludes(other=other):
                assert other is not None
                (reference,) = self.execute(other)
                return place != reference and self.cover(place, reference) > 0.02
            case Unoccluded():
                return not self.holds(OccludedBy(), place)
        raise AssertionError(predicate)

    def execute(self, form: LogicalForm) -> set[int]:
        match form:
            case UnionQuery(forms=forms):
                return set().union(*(self.execute(one) for one in forms))
            case PartQuery(part=name, of=of):
                return self.parts(
                    lambda node: node.part == name and node.whole in self.execute(of)
                )
            case PartAffordanceQuery(use=use):
                return self.parts(
                    lambda node: (node.category, node.part) in PART_AFFORDANCES[use].yes
                )
            case PartNameQuery(part=name):
                return self.parts(lambda node: node.part == name)
        assert isinstance(form, ObjectQuery)
        found = {
            place
            for place in self.objects
            if all(self.holds(predicate, place) for predicate in form.predicates)
        }
        return (
            found
            if form.superlative is None
            else {self.extreme(found, form.superlative)}
        )

    def parts(self, fits) -> set[int]:  # type: ignore[no-untyped-def]
        return {
            place
            for place, node in enumerate(self.nodes)
            if node.part is not None and fits(node)
        }

    def extreme(self, found: set[int], superlative: str) -> int:
        if superlative in ("leftmost", "rightmost"):
            pick = min if superlative == "leftmost" else max
            return pick(found, key=lambda place: self.column(place, "amodal"))
        pick = max if superlative == "largest" else min
        return pick(found, key=lambda place: self.amodal[place].sum())


def asked(scenes: list[Scene]) -> list[tuple[Scene, SceneQuestion]]:
    return [(made, question) for made in scenes for question in made.questions]


def test_targets_are_what_the_form_means(scenes: list[Scene]) -> None:
    for made in scenes:
        eye = Eye(made)
        for question in made.questions:
            assert eye.execute(question.form) == set(question.targets), question


def test_words_and_number_of_targets_agree(scenes: list[Scene]) -> None:
    for _, question in asked(scenes):
        kind = question.tags["question_type"]
        count = len(question.targets)
        assert question.tags["targets"] == ("none", "one", "several")[min(count, 2)]
        if kind == "none":
            assert count == 0
        elif kind == "several":
            assert count >= 2
        elif kind != "part function":
            assert count == 1, question
        else:
            assert count >= 1


def test_targets_are_in_sight(scenes: list[Scene]) -> None:
    for made, question in asked(scenes):
        for place in question.targets:
            node = made.nodes[place]
            assert node.visible_area >= 25
            assert node.visible_area >= 0.1 * node.amodal_area


def test_targets_come_from_left_to_right(scenes: list[Scene]) -> None:
    for made, question in asked(scenes):
        columns = [made.nodes[place].amodal_x for place in question.targets]
        assert columns == sorted(columns)


def test_answers_name_each_target_in_its_phrase(scenes: list[Scene]) -> None:
    for made in scenes:
        for sample in made.samples:
            assert sample.answer is not None
            assert len(sample.answer.phrases) == len(sample.targets)
            for number, (phrase, target) in enumerate(
                zip(sample.answer.phrases, sample.targets)
            ):
                assert phrase.regions == (number,)
                assert (
                    sample.answer.text[phrase.start : phrase.stop]
                    == f"the {target.name}"
                )
            if not sample.targets:
                assert sample.answer.text == "There is nothing like that here."


def test_samples_are_the_questions(scenes: list[Scene]) -> None:
    for made in scenes:
        samples = made.samples
        assert [sample.question for sample in samples] == [
            question.text for question in made.questions
        ]
        assert len({sample.id for sample in samples}) == len(samples)
        assert len({sample.question for sample in samples}) == len(samples)
        for sample, question in zip(samples, made.questions):
            assert sample.image_id == made.id
            assert sample.mask_type == question.mask_type
            assert [target.id for target in sample.targets] == [
                made.regions[place].id for place in question.targets
            ]
            assert sample.tags["split"] == made.split


def test_left_and_right_in_words_are_left_and_right_in_pixels(
    scenes: list[Scene],
) -> None:
    met = Counter[str]()
    for made, question in asked(scenes):
        side = re.search(r"\b(left|right) (?:side )?of the", question.text)
        form = (
            question.form.of if isinstance(question.form, PartQuery) else question.form
        )
        if not side or not question.targets or not isinstance(form, ObjectQuery):
            continue
        beside = [
            predicate for predicate in form.predicates if isinstance(predicate, Beside)
        ]
        if beside:
            (reference,) = beside[0].other.execute(made.graph)
            whole = made.nodes[question.targets[0]].whole
            _, amodal = made.dense
            gap = (
                np.nonzero(amodal[whole])[1].mean()
                - np.nonzero(amodal[reference])[1].mean()
            )
            assert (gap < 0) == (side[1] == "left"), question.text
            met[side[1]] += 1
    assert met["left"]
    assert met["right"]


def test_questions_without_target_refer_to_nothing_in_the_scene(
    scenes: list[Scene],
) -> None:
    """No absent category, color or part is in the image under another form, however hidden."""
    for made, question in asked(scenes):
        if question.targets:
            continue
        present = {made.nodes[place].category for place in made.graph.objects()}
        if (
            isinstance(question.form, ObjectQuery)
            and len(question.form.predicates) == 1
            and isinstance(question.form.predicates[0], HasCategory)
        ):
            category = question.form.predicates[0].category
            assert category not in present
            assert not any(
                alias in question.text
                for name in present
                for alias in CATEGORIES[name].also
            )
            assert category != "table" or made.layout.setting == "room"


def test_all_types_intents_and_levels_occur(scenes: list[Scene]) -> None:
    questions = [question for _, question in asked(scenes)]
    assert {question.tags["question_type"] for question in questions} == set(
        QUESTION_TYPES
    )
    share = np.mean([question.mask_type == "amodal" for question in questions])
    assert 0.35 < share < 0.6
    for name in ("level", "hidden", "targets", "setting"):
        assert len({question.tags[name] for question in questions}) >= 2
    for kind in QUESTION_TYPES:
        intents = {
            question.mask_type
            for question in questions
            if question.tags["question_type"] == kind
        }
        assert intents == {"visible", "amodal"}, kind


def test_hiding_as_a_mere_place_stays_visible() -> None:
    """Plain families about objects behind others want the visible mask, and there are such questions."""
    plain = {"command", "search", "bare", "polite", "ask"}
    met = 0
    for index in range(40):
        for question in make_scene(21, index, size=96).questions:
            if question.tags["family"] in plain:
                assert question.mask_type == "visible"
                met += (
                    " behind " in question.text
                    or "hidden" in question.text
                    or "covered" in question.text
                )
    assert met >= 5


def test_train_and_val_keep_clear_of_what_test_holds_out(scenes: list[Scene]) -> None:
    held_out = {family.name for family in FAMILIES if family.held_out}
    for made in scenes:
        if made.split == "test":
            continue
        for placed in made.layout.objects:
            assert placed.color not in HELD_OUT[placed.category]
        for question in made.questions:
            assert question.tags["family"] not in held_out
            assert question.tags["wording"] == "seen"
            assert question.tags["colors"] == "seen"


def test_test_holds_out_wordings_and_colors(scenes: list[Scene]) -> None:
    questions = [question for made, question in asked(scenes) if made.split == "test"]
    held_out = [
        question for question in questions if question.tags["wording"] == "held out"
    ]
    assert 0.4 < len(held_out) / len(questions) < 0.75
    assert {question.mask_type for question in held_out} == {"visible", "amodal"}
    objects = [
        placed
        for made in scenes
        if made.split == "test"
        for placed in made.layout.objects
    ]
    share = np.mean([placed.color in HELD_OUT[placed.category] for placed in objects])
    assert 0.25 < share < 0.55
    assert any(question.tags["colors"] == "held out" for question in questions)


@pytest.mark.parametrize("split", ["train", "val"])
def test_held_out_wordings_share_no_sentence_with_the_others(split: str) -> None:
    seen = {
        template
        for family in FAMILIES
        if not family.held_out
        for template in family.templates
    }
    held_out = {
        template
        for family in FAMILIES
        if family.held_out
        for template in family.templates
    }
    assert not seen & held_out
