"""Names that tell the objects of an image apart."""

from maskwise.models.tiny.object_names import unique_names


def test_objects_that_share_color_and_category_are_named_by_position() -> None:
    mug = ("mug", "red")
    box = ("box", "blue")
    assert unique_names([(*mug, 0.2), (*box, 0.5)]) == ["red mug", "blue box"]
    assert unique_names([(*mug, 0.8), (*mug, 0.2)]) == ["right red mug", "left red mug"]
    assert unique_names([(*mug, 0.52), (*mug, 0.5)]) == [
        "front red mug",
        "back red mug",
    ]
    assert unique_names([(*mug, 0.9), (*mug, 0.1), (*mug, 0.5)]) == [
        "number 3 red mug",
        "number 1 red mug",
        "number 2 red mug",
    ]


def test_a_category_may_have_a_name_format_of_its_own() -> None:
    assert unique_names([("plant", "green", 0.5), ("fork", "black", 0.5)]) == [
        "plant in the green pot",
        "black-handled fork",
    ]
