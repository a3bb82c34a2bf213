"""Names as people and datasets write them."""

import pytest

from maskwise.protocols.answers import normalise


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("Knife", "knife"),
        ("knife:handle", "knife handle"),
        ("knife_1's handle", "knife handle"),
        ("The knife_12's  handle.", "knife handle"),
        ("laptop_computer", "laptop computer"),
        ("the dog’s tail", "dog tail"),
        ("an apple", "apple"),
        ("theatre", "theatre"),
        ("Été", "été"),
        ("dougnut ", "dougnut"),
        ("", ""),
    ],
)
def test_normalise(name, plain):
    assert normalise(name) == plain
