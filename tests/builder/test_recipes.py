"""Recipes, written by the grammar: what holds for every question, on scenes, the world and photographs."""

from collections import Counter
from pathlib import Path

import msgspec
import pytest

from maskwise.builder.cue_tags import Cue, decode_cues, encode_cues
from maskwise.builder.draft import Draft, SourceImage, draft_to_sample
from maskwise.builder.facts import ImageFacts
from maskwise.builder.grammar_writer import write_output, write_with_grammar
from maskwise.builder.logical_forms import (
    HasFact,
    decode_form,
    encode_form,
    find_wrong_targets,
)
from maskwise.builder.recipe import Recipe, output_schema, output_to_drafts
from maskwise.builder.recipes import find_recipe
from maskwise.errors import UnknownNameError
from maskwise.language.category_names import find_category_name
from maskwise.language.intent import classify_intent
from maskwise.language.intent.cues import POLARITIES
from maskwise.registry import RECIPES
from maskwise.store import Dataset
from maskwise.world.dataset import bundled
from tests.builder.sources import box, read_photos, scene, table_scene, thing

ALL = sorted(RECIPES.built_in)


def drafts_of(
    dataset: Dataset, recipe: str, seed: int = 0
) -> list[tuple[SourceImage, Draft]]:
    drafts_with_images = []
    for row in range(len(dataset.images)):
        image = SourceImage.of(dataset, row)
        facts = ImageFacts(image)
        output = write_output(find_recipe(recipe), facts, seed)
        untagged, problems = output_to_drafts(output, facts, find_recipe(recipe))
        assert not problems
        drafts = write_with_grammar(find_recipe(recipe), image, seed)
        assert [draft.question for draft in untagged] == [
            draft.question for draft in drafts
        ]
        drafts_with_images += [(image, draft) for draft in drafts]
    return drafts_with_images


@pytest.fixture(scope="session", params=["world", "cocoa", "ade20k", "coco"])
def dataset(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Dataset:
    if request.param == "world":
        return Dataset.open(bundled())
    return read_photos(request.param, tmp_path_factory.mktemp(request.param) / "data")


@pytest.mark.parametrize("recipe", ALL)
def test_every_draft_is_a_sample(dataset: Dataset, recipe: str) -> None:
    found = drafts_of(dataset, recipe)
    if dataset.name.startswith("coco ") and recipe == "amodal-reason-seg":
        assert not found, "COCO has no amodal masks"
        return
    assert len(found) >= len(dataset.images)
    for image, draft in found:
        sample = draft_to_sample(draft, image, "id")
        assert sample.answer is not None
        assert sample.answer.phrases
        assert draft.question[0].isupper()
        assert "{" not in draft.question + draft.answer


@pytest.mark.parametrize("recipe", ALL)
def test_no_reasoning_question_names_a_target(dataset: Dataset, recipe: str) -> None:
    for image, draft in drafts_of(dataset, recipe):
        if draft.kind == "reasoning":
            for id in draft.region_ids:
                name = image.by_id[id].name
                assert find_category_name(draft.question, name) is None, (
                    draft.question,
                    name,
                )


def test_r2sm_asks_for_amodal_masks_of_occluded_objects_only(dataset: Dataset) -> None:
    for image, draft in drafts_of(dataset, "r2sm"):
        (target,) = draft.region_ids
        assert draft.mask_type in ("visible", "amodal")
        if draft.mask_type == "amodal":
            assert image.occlusion[target] >= 0.1


def test_r2sm_asks_for_the_visible_mask_of_occluded_objects_too() -> None:
    found = drafts_of(Dataset.open(bundled()), "r2sm")
    occluded = Counter(
        draft.mask_type
        for image, draft in found
        if image.occlusion[draft.region_ids[0]] >= 0.1
    )
    assert occluded["visible"] >= 0.9 * occluded["amodal"]
    assert {draft.kind for _, draft in found} == {"referring", "reasoning"}


def test_the_wording_of_r2sm_agrees_with_the_classifier() -> None:
    found = [draft for _, draft in drafts_of(Dataset.open(bundled()), "r2sm")]
    wrong = [
        (draft.question, draft.mask_type)
        for draft, read in zip(
            found, classify_intent([draft.question for draft in found])
        )
        if read.mask_type != draft.mask_type
    ]
    assert len(wrong) <= 0.02 * len(found), wrong


def test_r2sm_asks_in_minimal_pairs() -> None:
    pairs: dict[tuple[str, str], list[Draft]] = {}
    for image, draft in drafts_of(Dataset.open(bundled()), "r2sm"):
        if "cue_pair" in draft.tags:
            key = (image.info.id, draft.tags["cue_pair"])
            pairs.setdefault(key, []).append(draft)
    assert pairs
    for visible, amodal in pairs.values():
        assert (visible.mask_type, amodal.mask_type) == ("visible", "amodal")
        assert visible.region_ids == amodal.region_ids
        # Without its cue, the one is the other.
        assert _without_cue(visible) == _without_cue(amodal)


def _without_cue(draft: Draft) -> tuple[str, str]:
    (cue,) = decode_cues(draft.tags["cues"])
    assert POLARITIES[cue.kind] == draft.mask_type
    assert 0 <= cue.start < cue.end <= len(draft.question)
    return draft.question[: cue.start], draft.question[cue.end :]


def test_cues_survive_their_text() -> None:
    cues = [Cue("removal", 3, 17), Cue("mention", 20, 31)]
    assert decode_cues(encode_cues(cues)) == cues
    assert encode_cues([]) == ""
    assert decode_cues("") == []
    with pytest.raises(ValueError, match="unknown kind of cue 'smell'"):
        decode_cues("smell 1 2")


@pytest.mark.parametrize("recipe", ALL)
def test_exactly_the_targets_fulfil_the_logical_form(
    dataset: Dataset, recipe: str
) -> None:
    for image, draft in drafts_of(dataset, recipe):
        text = draft.tags.get("logical_form")
        if text is None:
            assert draft.kind == "referring"
            continue
        facts = ImageFacts(image)
        numbers = {region.id: region.number for region in facts.regions}
        targets = frozenset(numbers[id] for id in draft.region_ids)
        assert find_wrong_targets(decode_form(text), targets, facts) is None


def test_regions_without_an_amodal_mask_are_not_asked_about_for_both() -> None:
    dog = msgspec.structs.replace(thing("dog", "dog", box(20, 20, 60, 90)), amodal=None)
    cat = thing("cat", "cat", box(100, 40, 150, 90))
    drafts = write_with_grammar(find_recipe("amodal-reason-seg"), scene(dog, cat))
    assert drafts
    assert all(draft.region_ids == ("cat",) for draft in drafts)


def test_answers_of_amodal_reason_seg_combine_objects() -> None:
    found = [
        draft for _, draft in drafts_of(Dataset.open(bundled()), "amodal-reason-seg")
    ]
    assert all(draft.mask_type == "both" for draft in found)
    assert sum(len(draft.region_ids) > 1 for draft in found) > len(found) / 4
    assert all(len(target.regions) == 1 for draft in found for target in draft.targets)


def test_mmr_asks_about_objects_parts_and_both() -> None:
    levels = Counter(
        draft.tags["level"] for _, draft in drafts_of(Dataset.open(bundled()), "mmr")
    )
    assert set(levels) == {"object", "part", "mixed"}


def test_mmr_has_a_caption() -> None:
    output = write_output(find_recipe("mmr"), ImageFacts(table_scene()))
    assert output["caption"].startswith("The image shows two dogs")


@pytest.mark.parametrize("recipe", ALL)
def test_the_grammar_repeats_itself(recipe: str) -> None:
    image = table_scene()
    data = Dataset.open(bundled())
    assert write_with_grammar(find_recipe(recipe), image) == write_with_grammar(
        find_recipe(recipe), image
    )
    assert drafts_of(data, recipe, seed=1) != drafts_of(data, recipe, seed=2)


def test_a_use_that_people_would_disagree_about_is_not_asked() -> None:
    """Is the box a seat? Then nobody asks where to sit."""
    chair = thing("a", "chair", box(20, 20, 60, 90))
    crate = thing("b", "box", box(100, 40, 150, 90))
    sit = encode_form(HasFact("does: give someone a place to sit"))
    recipe = find_recipe("amodal-reason-seg")
    asked = {}
    for name, regions in {"alone": (chair,), "both": (chair, crate)}.items():
        drafts = [
            draft
            for seed in range(20)
            for draft in write_with_grammar(recipe, scene(*regions), seed)
        ]
        asked[name] = sum(draft.tags["logical_form"] == sit for draft in drafts)
    assert asked["alone"]
    assert not asked["both"]


def test_all_objects_of_a_use_are_targets() -> None:
    dogs = scene(
        thing("a", "dog", box(20, 20, 60, 90)), thing("b", "dog", box(100, 40, 150, 90))
    )
    first, *_ = write_with_grammar(find_recipe("amodal-reason-seg"), dogs)
    assert first.region_ids == ("a", "b")
    assert [target.phrase for target in first.targets][1] == "the dog on the right"


@pytest.mark.parametrize("recipe", ALL)
def test_the_grammar_fulfils_the_schema_of_language_models(recipe: str) -> None:
    chosen = find_recipe(recipe)
    schema = output_schema(chosen)
    output = write_output(chosen, ImageFacts(table_scene()))
    assert set(output) == set(schema["required"])
    fields = schema["properties"]["samples"]["items"]["required"]
    assert all(set(item) == set(fields) for item in output["samples"])


def test_samples_that_do_not_fit_are_reported() -> None:
    facts = ImageFacts(table_scene())
    good = {
        "question": "What barks?",
        "answer": "The dog.",
        "targets": [{"phrase": "The dog", "regions": [7]}],
    }
    bad = [
        {"question": "What barks?"},
        good | {"targets": [{"phrase": "The dog", "regions": [99]}]},
        good | {"targets": [{"phrase": "The dog", "regions": ["seven"]}]},
        "no object",
    ]
    drafts, problems = output_to_drafts(
        {"samples": [*bad, good]}, facts, find_recipe("mmr")
    )
    assert [draft.region_ids for draft in drafts] == [(facts.regions[6].id,)]
    assert len(problems) == len(bad)
    drafts, problems = output_to_drafts({"samples": 3}, facts, find_recipe("mmr"))
    assert drafts == []
    assert len(problems) == 1


def test_r2sm_samples_without_a_mask_type_are_reported() -> None:
    item = {
        "question": "Mark the cup.",
        "answer": "The cup.",
        "targets": [{"phrase": "The cup", "regions": [3]}],
    }
    drafts, problems = output_to_drafts(
        {"samples": [item]}, ImageFacts(table_scene()), find_recipe("r2sm")
    )
    assert (drafts, problems) == ([], ["sample 1: mask_type or kind is missing"])


def test_unknown_recipes_list_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match="amodal-reason-seg"):
        find_recipe("lisa")


def test_an_image_without_regions_gets_no_questions(tmp_path: Path) -> None:
    for recipe in RECIPES.load_all(Recipe).values():
        assert write_with_grammar(recipe, scene()) == []
