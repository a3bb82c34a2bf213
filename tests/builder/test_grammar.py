"""Sentences of the grammar, and the choice among its proposals."""

from collections import Counter
from random import Random

import pytest

from maskwise.builder.facts import ImageFacts
from maskwise.builder.grammar import (
    MAX_TARGETS,
    AnswerPhrase,
    ProposedQuestion,
    enumerate_phrases,
    refer,
)
from maskwise.builder.logical_forms import find_wrong_targets
from maskwise.builder.object_questions import (
    GrammarContext,
    ask_choices,
    ask_comparisons,
    ask_counts,
    ask_ends,
    ask_hidden,
    ask_neighbors,
    ask_occluders,
    ask_remaining,
    ask_riddles,
    ask_surfaces,
    ask_three_uses,
    ask_two_uses,
    ask_uses,
)
from maskwise.builder.part_questions import (
    ask_alike_parts,
    ask_objects_with_parts,
    ask_parts,
    ask_two_parts,
)
from maskwise.builder.selection import mix
from maskwise.builder.wording import introduce
from tests.builder.sources import box, scene, table_scene, thing

SIZE_WORDS = ("more of the image", "bigger")

FAMILIES = (
    ask_uses,
    ask_two_uses,
    ask_three_uses,
    ask_ends,
    ask_choices,
    ask_comparisons,
    ask_counts,
    ask_neighbors,
    ask_remaining,
    ask_riddles,
    ask_occluders,
    ask_hidden,
    ask_surfaces,
    ask_parts,
    ask_two_parts,
    ask_objects_with_parts,
    ask_alike_parts,
)


def context_of_table(seed: int = 0) -> GrammarContext:
    return GrammarContext(ImageFacts(table_scene()), Random(seed))


def answer_text(proposal: ProposedQuestion) -> str:
    return str(proposal.to_item()["answer"])


# -- sentences -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ([], ""),
        (["the cup"], "the cup"),
        (["the cup", "the bowl"], "the cup and the bowl"),
        (["the cup", "the bowl", "the plate"], "the cup, the bowl and the plate"),
    ],
)
def test_phrases_are_enumerated_with_a_conjunction(names: list[str], text: str) -> None:
    phrases = [AnswerPhrase(name, (number,)) for number, name in enumerate(names)]
    pieces = enumerate_phrases(phrases)
    assert "".join(p if isinstance(p, str) else p.text for p in pieces) == text


def test_a_proposal_becomes_what_a_language_model_would_return() -> None:
    phrases = [AnswerPhrase("the cup", (3,)), AnswerPhrase("two legs", (4, 5))]
    answer = (*enumerate_phrases(phrases, "or"), " would do.")
    item = ProposedQuestion("what helps?", answer, "use").to_item()
    assert item == {
        "question": "What helps?",
        "answer": "The cup or two legs would do.",
        "targets": [
            {"phrase": "The cup", "regions": [3]},
            {"phrase": "two legs", "regions": [4, 5]},
        ],
    }


def test_objects_are_referred_to_from_left_to_right() -> None:
    facts = ImageFacts(table_scene())
    objects = [region for region in facts.objects if region.id in ("right", "left")]
    names = {"left": "the dog on the left", "right": "the dog on the right"}
    phrases = refer(objects[::-1], names)
    assert phrases is not None
    assert [phrase.text for phrase in phrases] == list(names.values())


def test_objects_without_a_name_and_too_many_objects_are_not_referred_to() -> None:
    cups = [
        thing(str(n), "cup", box(20 * n, 10, 20 * n + 15, 30))
        for n in range(MAX_TARGETS + 1)
    ]
    objects = ImageFacts(scene(*cups)).objects
    names = {region.id: f"cup {region.id}" for region in objects}
    assert refer(objects, names) is None
    assert refer(objects[:MAX_TARGETS], names) is not None
    assert refer(objects[:2], {"0": "cup 0"}) is None
    assert refer([], names) is None


# -- families of questions -------------------------------------------------------------


def test_an_occluder_is_asked_about_and_answered() -> None:
    proposals = list(ask_occluders(context_of_table()))
    about_plate = [
        proposal
        for proposal in proposals
        if [region.id for region in proposal.about] == ["cup"]
    ]
    assert about_plate
    for proposal in about_plate:
        assert answer_text(proposal) == "The coffee cup covers a part of the plate."


def test_what_is_hidden_is_asked_about_from_its_occluder() -> None:
    front = box(40, 40, 60, 60)
    dog = box(50, 50, 90, 62)
    regions = (
        thing("dog", "dog", dog - front, dog),
        thing("suitcase", "suitcase", front),
    )
    context = GrammarContext(ImageFacts(scene(*regions)), Random(0))
    (proposal,) = ask_hidden(context)
    assert [region.id for region in proposal.about] == ["dog"]
    assert answer_text(proposal) == "The dog is partly hidden behind the suitcase."


def test_background_is_no_answer_to_what_is_hidden() -> None:
    """The cup of the table scene hides a part of the plate, and of the table too."""
    for proposal in ask_hidden(context_of_table()):
        assert "table" not in [region.id for region in proposal.about]


def test_what_stands_on_a_surface_is_enumerated() -> None:
    proposals = list(ask_surfaces(context_of_table()))
    on_table = [proposal for proposal in proposals if len(proposal.about) == 3]
    assert on_table
    answer = answer_text(on_table[0])
    for name in ("the coffee cup", "the plate", "the knife"):
        assert name in answer.lower()
    assert answer.endswith(" are on the dining table.")


def test_one_of_two_animals_is_singled_out_by_size() -> None:
    dogs = (
        thing("small", "dog", box(10, 40, 30, 60)),
        thing("large", "dog", box(80, 20, 180, 90)),
    )
    context = GrammarContext(ImageFacts(scene(*dogs)), Random(0))
    by_size = [
        proposal
        for proposal in ask_choices(context)
        if any(word in proposal.question for word in SIZE_WORDS)
    ]
    assert by_size
    assert all(proposal.about[0].id == "large" for proposal in by_size)


def test_what_remains_of_a_kind_is_asked_about() -> None:
    pets = (
        thing("dog", "dog", box(10, 40, 50, 80)),
        thing("cat", "cat", box(80, 40, 120, 80)),
    )
    context = GrammarContext(ImageFacts(scene(*pets)), Random(0))
    proposals = list(ask_remaining(context))
    assert proposals
    for proposal in proposals:
        (target,) = proposal.about
        assert target.id in ("dog", "cat")
        about_dog = any(word in proposal.question for word in ("bark", "wag", "leash"))
        if about_dog:
            assert target.id == "cat"


def test_a_neighbor_is_asked_about_from_what_it_stands_beside() -> None:
    pets = (
        thing("dog", "dog", box(10, 40, 50, 80)),
        thing("car", "car", box(80, 40, 160, 80)),
    )
    context = GrammarContext(ImageFacts(scene(*pets)), Random(0))
    proposals = list(ask_neighbors(context))
    assert proposals
    for proposal in proposals:
        side = "left" if proposal.about[0].id == "dog" else "right"
        assert f"to the {side} of " in proposal.question


def test_both_ends_of_a_row_are_asked_about() -> None:
    dogs = [thing(str(n), "dog", box(50 * n, 10, 50 * n + 30, 60)) for n in range(3)]
    context = GrammarContext(ImageFacts(scene(*dogs)), Random(0))
    (proposal,) = ask_ends(context)
    assert [region.id for region in proposal.about] == ["0", "2"]
    two = GrammarContext(ImageFacts(scene(*dogs[:2])), Random(0))
    assert not list(ask_ends(two)), "two have no ends"


def test_three_different_things_are_asked_for_at_once() -> None:
    names = ("dog", "car", "clock")
    things = [
        thing(name, name, box(60 * n, 10, 60 * n + 40, 60))
        for n, name in enumerate(names)
    ]
    context = GrammarContext(ImageFacts(scene(*things)), Random(0))
    proposals = list(ask_three_uses(context))
    assert proposals
    for proposal in proposals:
        assert {region.id for region in proposal.about} == set(names)


def test_of_two_people_the_superlative_is_asked_for() -> None:
    """Nobody has said that there are two, so "who is farther to the right?" would not be understood."""
    people = [thing(str(n), "person", box(80 * n, 10, 80 * n + 30, 90)) for n in (0, 1)]
    facts = ImageFacts(scene(*people))
    questions = [
        proposal.question
        for seed in range(10)
        for proposal in ask_choices(GrammarContext(facts, Random(seed)))
    ]
    assert questions
    for question in questions:
        assert not any(word in question for word in (" farther ", " nearer ", " more "))


def test_a_question_with_an_introduction_is_what_somebody_says() -> None:
    for seed in range(50):
        before, after = introduce("What barks at the mailman?", Random(seed))
        assert (before == "") == (after == "")
        if before:
            assert before.endswith(': "')
            assert after == '"'
    quoted = 'A crossword clue reads "it barks". What is it?'
    assert {introduce(quoted, Random(seed)) for seed in range(50)} == {("", "")}


def test_an_object_with_two_labels_is_not_asked_about() -> None:
    screen = thing("tv", "tv", box(50, 20, 130, 80))
    laptop = thing("laptop", "laptop", box(50, 22, 132, 84))
    cat = thing("cat", "cat", box(5, 20, 45, 80))
    context = GrammarContext(ImageFacts(scene(screen, laptop, cat)), Random(0))
    asked = {
        region.id
        for ask in (ask_uses, ask_two_uses, ask_riddles)
        for proposal in ask(context)
        for region in proposal.about
    }
    assert asked == {"cat"}


def test_a_bunch_beside_its_members_is_not_counted_as_one() -> None:
    bunch = thing("bunch", "banana", box(20, 10, 150, 90))
    member = thing("member", "banana", box(40, 40, 70, 50))
    assert not list(
        ask_uses(GrammarContext(ImageFacts(scene(bunch, member)), Random(0)))
    )
    assert list(ask_uses(GrammarContext(ImageFacts(scene(bunch)), Random(0))))


def test_many_alike_objects_share_a_phrase_where_the_recipe_allows_it() -> None:
    dogs = [thing(str(n), "dog", box(20 * n, 10, 20 * n + 15, 30)) for n in range(7)]
    facts = ImageFacts(scene(*dogs))
    apart = GrammarContext(facts, Random(0))
    assert not list(ask_uses(apart))
    together = GrammarContext(facts, Random(0), grouped=True)
    proposals = list(ask_uses(together))
    assert proposals
    for proposal in proposals:
        assert "the seven dogs" in answer_text(proposal).lower()


def test_alike_parts_are_asked_about_only_if_all_objects_have_them() -> None:
    def car(id: str, left: int, with_wheel: bool) -> list[object]:
        body = thing(id, "car", box(left, 40, left + 60, 80))
        wheel = thing(
            f"{id}.wheel", "wheel", box(left + 5, 65, left + 20, 80), part_of=id
        )
        return [body, wheel] if with_wheel else [body]

    def questions(*cars: list[object]) -> list[str]:
        regions = [region for parts in cars for region in parts]
        facts = ImageFacts(scene(*regions))  # type: ignore[arg-type]
        context = GrammarContext(facts, Random(0))
        return [proposal.question for proposal in ask_alike_parts(context)]

    assert questions(car("a", 10, True), car("b", 110, True))
    assert not questions(car("a", 10, True), car("b", 110, False))
    assert not questions(car("a", 10, True))


@pytest.mark.parametrize("ask", FAMILIES)
@pytest.mark.parametrize("seed", range(5))
def test_every_answer_names_all_targets_once(ask: object, seed: int) -> None:
    for proposal in ask(context_of_table(seed)):  # type: ignore[operator]
        item = proposal.to_item()
        numbers = [number for target in item["targets"] for number in target["regions"]]
        assert Counter(numbers) == Counter(region.number for region in proposal.about)
        assert proposal.form is not None
        facts = ImageFacts(table_scene())
        targets = frozenset(numbers)
        assert find_wrong_targets(proposal.form, targets, facts) is None
        for target in item["targets"]:
            assert target["phrase"] in item["answer"]
        assert len(numbers) <= 2 * MAX_TARGETS
        assert item["question"][0].isupper()
        assert item["answer"].endswith(".")


@pytest.mark.parametrize("ask", FAMILIES)
def test_an_empty_image_gets_no_question(ask: object) -> None:
    context = GrammarContext(ImageFacts(scene()), Random(0))
    assert list(ask(context)) == []  # type: ignore[operator]


# -- selection -------------------------------------------------------------------------


def proposals_about(family: str, *ids: str) -> list[ProposedQuestion]:
    """One proposal per id, about the object of that id."""
    regions = {region.id: region for region in ImageFacts(table_scene()).objects}
    return [
        ProposedQuestion(
            f"{family} {id}?", (f"{family} {id}.",), family, (regions[id],)
        )
        for id in ids
    ]


def test_families_take_turns_up_to_a_limit_of_each() -> None:
    families = [
        proposals_about("use", "cup", "plate", "knife"),
        proposals_about("kind", "left", "right"),
    ]
    chosen = mix(families, 10, Random(0), most=2)
    assert [proposal.family for proposal in chosen] == ["use", "kind", "use", "kind"]
    assert len(mix(families, 3, Random(0), most=2)) == 3


def test_objects_that_were_asked_about_least_come_first() -> None:
    families = [
        proposals_about("use", "cup"),
        proposals_about("kind", "cup", "plate"),
    ]
    for seed in range(10):
        first, second = mix(families, 2, Random(seed), most=1)
        assert first.about[0].id == "cup"
        assert second.about[0].id == "plate"


def test_no_question_and_no_answer_is_repeated() -> None:
    use = proposals_about("use", "cup", "plate")
    chosen = mix([use, use, use], 6, Random(0), most=3)
    assert sorted(proposal.question for proposal in chosen) == [
        "use cup?",
        "use plate?",
    ]


def test_several_targets_are_preferred_as_often_as_wanted() -> None:
    regions = {region.id: region for region in ImageFacts(table_scene()).objects}
    single = proposals_about("use", "cup", "plate", "knife")
    several = [
        ProposedQuestion(f"both {n}?", (f"both {n}.",), "two", tuple(regions.values()))
        for n in range(3)
    ]
    for share, expected in ((1.0, "two"), (0.0, "use")):
        chosen = mix([single, several], 3, Random(0), most=3, multi_share=share)
        assert {proposal.family for proposal in chosen} == {expected}


def test_questions_that_name_a_target_are_not_chosen() -> None:
    facts = ImageFacts(table_scene())
    leak = proposals_about("cup", "cup")
    assert mix([leak], 1, Random(0), most=1, facts=facts) == []


def test_nothing_is_chosen_from_nothing() -> None:
    assert mix([], 3, Random(0), most=1) == []
    assert mix([[], []], 3, Random(0), most=1) == []
