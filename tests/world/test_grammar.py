"""Questions say what they mean: every one is executed again, pixel by pixel, without the package's own evaluation."""

import re
from collections import Counter

import numpy as np
import pytest

from maskwise.world import Question, Scene, scene
from maskwise.world.catalogue import CATEGORIES, HELD_OUT, KINDS, PART_USES, USES
from maskwise.world.forms import (
    Before,
    Behind,
    Beside,
    Both,
    Clear,
    Coloured,
    Form,
    Is,
    IsKind,
    Made,
    Objects,
    Parts,
    PartsFor,
    PartsNamed,
    Serves,
    Test,
)
from maskwise.world.grammar import QUESTION_TYPES
from maskwise.world.wording import FAMILIES


class Eye:
    """Judges forms from the dense masks alone, each test written out anew."""

    def __init__(self, made: Scene) -> None:
        self.items, self.objects = made.items, made.inventory.objects()
        self.visible, self.amodal = made.dense

    def column(self, place: int, kind: str) -> float:
        masks = self.visible if kind == "visible" and self.visible[place].any() else self.amodal
        return float(np.nonzero(masks[place])[1].mean()) / masks.shape[2]

    def cover(self, front: int, back: int) -> float:
        return (self.visible[front] & self.amodal[back]).sum() / self.amodal[back].sum()

    def holds(self, test: Test, place: int) -> bool:
        item = self.items[place]
        match test:
            case Is(category=category):
                return item.category == category
            case IsKind(kind=kind):
                return item.category in KINDS[kind].yes
            case Serves(use=use):
                return item.category in USES[use].yes
            case Coloured(colour=colour):
                return item.colour == colour
            case Made(material=material):
                return item.material == material
            case Beside(side=side, other=other):
                (reference,) = self.find(other)
                steps = [
                    self.column(place, kind) - self.column(reference, kind) for kind in ("visible", "amodal")
                ]
                return place != reference and (max(steps) < 0 if side == "left" else min(steps) > 0)
            case Behind(other=None):
                return (self.amodal[place] & ~self.visible[place]).sum() > 0.02 * self.amodal[place].sum()
            case Behind(other=other):
                (reference,) = self.find(other)
                return place != reference and self.cover(reference, place) > 0.02
            case Before(other=other):
                assert other is not None
                (reference,) = self.find(other)
                return place != reference and self.cover(place, reference) > 0.02
            case Clear():
                return not self.holds(Behind(), place)
        raise AssertionError(test)

    def find(self, form: Form) -> set[int]:
        match form:
            case Both(forms=forms):
                return set().union(*(self.find(one) for one in forms))
            case Parts(part=name, of=of):
                return self.parts(lambda item: item.part == name and item.whole in self.find(of))
            case PartsFor(use=use):
                return self.parts(lambda item: (item.category, item.part) in PART_USES[use].yes)
            case PartsNamed(part=name):
                return self.parts(lambda item: item.part == name)
        assert isinstance(form, Objects)
        found = {place for place in self.objects if all(self.holds(test, place) for test in form.tests)}
        return found if form.best is None else {self.extreme(found, form.best)}

    def parts(self, fits) -> set[int]:  # type: ignore[no-untyped-def]
        return {place for place, item in enumerate(self.items) if item.part is not None and fits(item)}

    def extreme(self, found: set[int], best: str) -> int:
        if best in ("leftmost", "rightmost"):
            pick = min if best == "leftmost" else max
            return pick(found, key=lambda place: self.column(place, "amodal"))
        pick = max if best == "largest" else min
        return pick(found, key=lambda place: self.amodal[place].sum())


def asked(scenes: list[Scene]) -> list[tuple[Scene, Question]]:
    return [(made, question) for made in scenes for question in made.questions]


def test_targets_are_what_the_form_means(scenes: list[Scene]) -> None:
    for made in scenes:
        eye = Eye(made)
        for question in made.questions:
            assert eye.find(question.form) == set(question.targets), question


def test_words_and_number_of_targets_agree(scenes: list[Scene]) -> None:
    for _, question in asked(scenes):
        kind, count = question.tags["question_type"], len(question.targets)
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
            item = made.items[place]
            assert item.seen >= 25
            assert item.seen >= 0.1 * item.full


def test_targets_come_from_left_to_right(scenes: list[Scene]) -> None:
    for made, question in asked(scenes):
        columns = [made.items[place].full_x for place in question.targets]
        assert columns == sorted(columns)


def test_answers_name_each_target_in_its_phrase(scenes: list[Scene]) -> None:
    for made in scenes:
        for sample in made.samples:
            assert sample.answer is not None
            assert len(sample.answer.phrases) == len(sample.targets)
            for number, (phrase, target) in enumerate(zip(sample.answer.phrases, sample.targets)):
                assert phrase.regions == (number,)
                assert sample.answer.text[phrase.start : phrase.stop] == f"the {target.name}"
            if not sample.targets:
                assert sample.answer.text == "There is nothing like that here."


def test_samples_are_the_questions(scenes: list[Scene]) -> None:
    for made in scenes:
        samples = made.samples
        assert [sample.question for sample in samples] == [question.text for question in made.questions]
        assert len({sample.id for sample in samples}) == len(samples)
        assert len({sample.question for sample in samples}) == len(samples)
        for sample, question in zip(samples, made.questions):
            assert sample.image_id == made.id
            assert sample.mask_type == question.mask_type
            assert [target.id for target in sample.targets] == [
                made.regions[place].id for place in question.targets
            ]
            assert sample.tags["split"] == made.split


def test_left_and_right_in_words_are_left_and_right_in_pixels(scenes: list[Scene]) -> None:
    met = Counter[str]()
    for made, question in asked(scenes):
        side = re.search(r"\b(left|right) (?:side )?of the", question.text)
        form = question.form.of if isinstance(question.form, Parts) else question.form
        if not side or not question.targets or not isinstance(form, Objects):
            continue
        beside = [test for test in form.tests if isinstance(test, Beside)]
        if beside:
            (reference,) = beside[0].other.find(made.inventory)
            whole = made.items[question.targets[0]].whole
            _, amodal = made.dense
            gap = np.nonzero(amodal[whole])[1].mean() - np.nonzero(amodal[reference])[1].mean()
            assert (gap < 0) == (side[1] == "left"), question.text
            met[side[1]] += 1
    assert met["left"]
    assert met["right"]


def test_nothing_asked_for_in_vain_is_there(scenes: list[Scene]) -> None:
    """No absent category, colour or part is in the image under another form, however hidden."""
    for made, question in asked(scenes):
        if question.targets:
            continue
        present = {made.items[place].category for place in made.inventory.objects()}
        if (
            isinstance(question.form, Objects)
            and len(question.form.tests) == 1
            and isinstance(question.form.tests[0], Is)
        ):
            category = question.form.tests[0].category
            assert category not in present
            assert not any(alias in question.text for name in present for alias in CATEGORIES[name].also)
            assert category != "table" or made.layout.setting == "room"


def test_all_types_intents_and_levels_occur(scenes: list[Scene]) -> None:
    questions = [question for _, question in asked(scenes)]
    assert {question.tags["question_type"] for question in questions} == set(QUESTION_TYPES)
    share = np.mean([question.mask_type == "amodal" for question in questions])
    assert 0.35 < share < 0.6
    for name in ("level", "hidden", "targets", "setting"):
        assert len({question.tags[name] for question in questions}) >= 2
    for kind in QUESTION_TYPES:
        intents = {question.mask_type for question in questions if question.tags["question_type"] == kind}
        assert intents == {"visible", "amodal"}, kind


def test_hiding_as_a_mere_place_stays_visible() -> None:
    """Plain families about things behind others want the visible mask, and there are such questions."""
    plain = {"command", "search", "bare", "polite", "ask"}
    met = 0
    for index in range(40):
        for question in scene(21, index, size=96).questions:
            if question.tags["family"] in plain:
                assert question.mask_type == "visible"
                met += " behind " in question.text or "hidden" in question.text or "covered" in question.text
    assert met >= 5


def test_train_and_val_keep_clear_of_what_test_holds_out(scenes: list[Scene]) -> None:
    novel = {family.name for family in FAMILIES if family.novel}
    for made in scenes:
        if made.split == "test":
            continue
        for thing in made.layout.things:
            assert thing.colour not in HELD_OUT[thing.category]
        for question in made.questions:
            assert question.tags["family"] not in novel
            assert question.tags["wording"] == "seen"
            assert question.tags["colours"] == "seen"


def test_test_holds_out_wordings_and_colours(scenes: list[Scene]) -> None:
    questions = [question for made, question in asked(scenes) if made.split == "test"]
    held_out = [question for question in questions if question.tags["wording"] == "held out"]
    assert 0.4 < len(held_out) / len(questions) < 0.75
    assert {question.mask_type for question in held_out} == {"visible", "amodal"}
    things = [thing for made in scenes if made.split == "test" for thing in made.layout.things]
    share = np.mean([thing.colour in HELD_OUT[thing.category] for thing in things])
    assert 0.25 < share < 0.55
    assert any(question.tags["colours"] == "held out" for question in questions)


@pytest.mark.parametrize("split", ["train", "val"])
def test_held_out_wordings_share_no_sentence_with_the_others(split: str) -> None:
    seen = {template for family in FAMILIES if not family.novel for template in family.templates}
    novel = {template for family in FAMILIES if family.novel for template in family.templates}
    assert not seen & novel
