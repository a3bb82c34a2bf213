"""What a language model is told about an image."""

from msgspec.structs import replace

from maskwise.builder.facts import ImageFacts
from maskwise.builder.prompt import (
    MAX_MARKS,
    TOKEN_MARGIN,
    expected_tokens,
    make_request,
)
from maskwise.builder.recipe import output_schema
from maskwise.builder.recipes import find_recipe
from tests.builder.sources import box, scene, table_scene, thing


def region_lines(text: str) -> list[str]:
    """The list of regions at the end of a request."""
    return text.partition("The regions:\n")[2].splitlines()


def test_regions_are_listed_with_place_size_and_occluder() -> None:
    request = make_request(ImageFacts(table_scene()), find_recipe("r2sm"))
    assert request is not None
    lines = {line.partition(":")[0]: line for line in region_lines(request.text)}
    assert lines["3"] == "3: coffee cup; middle left; 2.0 % of the image"
    hidden = 100 * 100 / 480  # the cup covers 10 x 10 pixels of the plate's 40 x 12
    assert lines["2"].startswith("2: plate; middle center; ")
    assert lines["2"].endswith(f"occluded: {hidden:.0f} % is hidden by 3")


def test_parts_are_listed_with_their_wholes_where_the_recipe_asks_about_them() -> None:
    facts = ImageFacts(table_scene())
    with_parts = make_request(facts, find_recipe("mmr"))
    without_parts = make_request(facts, find_recipe("r2sm"))
    assert with_parts is not None
    assert without_parts is not None
    knife = next(region for region in facts.objects if region.id == "knife")
    part_lines = [line for line in region_lines(with_parts.text) if "(part of" in line]
    assert len(part_lines) == 2
    assert all(f"(part of {knife.number})" in line for line in part_lines)
    assert "(part of" not in without_parts.text


def test_an_image_without_a_suitable_region_is_not_sent() -> None:
    assert make_request(ImageFacts(scene()), find_recipe("r2sm")) is None
    tiny = thing("crumb", "crumb", box(10, 10, 13, 13))
    assert make_request(ImageFacts(scene(tiny)), find_recipe("r2sm")) is None


def test_only_the_largest_regions_are_marked_in_the_order_of_their_numbers() -> None:
    columns = 20
    regions = []
    for number in range(MAX_MARKS + 10):
        left = 10 * (number % columns)
        top = 20 * (number // columns)
        # Those that come last are the largest.
        side = 8 if number < 10 else 9
        regions.append(thing(str(number), "cup", box(left, top, left + side, top + 9)))
    request = make_request(ImageFacts(scene(*regions)), find_recipe("r2sm"))
    assert request is not None
    numbers = [int(line.partition(":")[0]) for line in region_lines(request.text)]
    assert numbers == list(range(11, MAX_MARKS + 11))


def test_a_request_has_the_schema_and_the_limit_of_its_recipe() -> None:
    recipe = find_recipe("mmr")
    request = make_request(ImageFacts(table_scene()), recipe)
    assert request is not None
    assert request.schema == output_schema(recipe)
    assert request.max_tokens == round(TOKEN_MARGIN * expected_tokens(recipe))
    assert request.prompt_version == recipe.prompt_version
    assert recipe.instructions in request.text
    assert request.image


def test_a_caption_makes_replies_longer() -> None:
    recipe = find_recipe("mmr")
    plain = type(recipe)(**{**vars(recipe), "caption": False})
    assert expected_tokens(recipe) > expected_tokens(plain)


def test_the_request_depends_on_the_annotations_only() -> None:
    facts = ImageFacts(table_scene())
    recipe = find_recipe("r2sm")
    first = make_request(facts, recipe)
    assert first == make_request(ImageFacts(table_scene()), recipe)
    cup = facts.image.by_id["cup"]
    others = [region for region in facts.image.regions if region.id != "cup"]
    renamed = scene(*others, replace(cup, name="teapot"))
    assert make_request(ImageFacts(renamed), recipe) != first
