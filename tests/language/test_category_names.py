"""Questions that name a category are found: by name, synonym, inflection or compound, and by nothing else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwise.language.category_names import (
    find_category_name,
    load_lexicon,
    split_names,
)
from maskwise.language.tokens import split_words


@pytest.mark.parametrize(
    ("name", "question", "found"),
    [
        ("cup", "Which Cup is full?", "cup"),
        ("cup", "Which CUPS are full?", "cups"),
        ("knife", "Which of the knives is sharp?", "knives"),
        ("person", "Who are the people?", "people"),
        ("person", "Who is the tallest man?", "man"),
        ("bus", "Which of the buses leaves first?", "buses"),
        ("dish", "Which dishes are dirty?", "dishes"),
        ("mouse", "Where are the mice?", "mice"),
        ("skis", "What is the skier standing on?", "skier"),
        ("ski", "What does one need for skiing?", "skiing"),
        ("bicycle", "What would you use for biking?", "biking"),
        ("skateboard", "What carries the skateboarder?", "skateboarder"),
        ("wine glass", "Which glass is full?", "glass"),
        ("wine glass", "Which wineglass is full?", "wineglass"),
        ("wine glass", "Which wine-glasses are full?", "wine glasses"),
        ("skateboard", "Which board has wheels?", "board"),
        ("ball", "What does one do with the basketball?", "basketball"),
        ("couch", "What stands behind the sofa?", "sofa"),
        ("cell_phone", "Whose phone's ringing?", "phone"),
        ("bow_(weapon)", "Who holds the bow?", "bow"),
        ("car, auto, automobile", "Which automobile is red?", "automobile"),
        ("knife:blade", "Which blade is sharp?", "blade"),
        ("knife:blade", "Which part of the knife cuts?", "knife"),
        ("cup's handle", "Which handle?", "handle"),
        ("man in white", "Who is the man there?", "man"),
        ("dougnut ", "Where is the dougnut?", "dougnut"),
        ("can", "What is inside the can?", "can"),
        ("can", "Which cans are open?", "cans"),
        ("watch", "Who wears a watch?", "watch"),
    ],
)
def test_names_are_found(name: str, question: str, found: str) -> None:
    assert find_category_name(question, name) == found


@pytest.mark.parametrize(
    ("name", "question"),
    [
        ("cup", "What is in the cupboard?"),
        ("can", "What can I drink?"),
        ("watch", "What would I watch?"),
        ("car", "What is on the carpet?"),
        ("light", "Please highlight what shines."),
        ("hot dog", "What would a dog eat?"),
        ("remote control", "What would I use to control the volume?"),
        ("rat", "What has a good rating?"),
        ("mat", "What do team mates wear?"),
        ("train", "What does one use for training?"),
        ("wine glass", "What would you drink wine from?"),
        ("man in white", "What is white?"),
        ("man", "Which person is tallest?"),
        ("person", "What is being carried?"),
        ("bed", "What is embedded here?"),
        ("cup", ""),
        ("", "What is it?"),
        ("123", "What is it?"),
    ],
)
def test_other_words_are_no_names(name: str, question: str) -> None:
    assert find_category_name(question, name) is None


def test_names_are_split_into_nouns() -> None:
    assert split_names("Traffic light, stop-light; the signal") == [
        ("traffic", "light"),
        ("stop", "light"),
        ("signal",),
    ]
    assert split_names("woman's hand on the left") == [("woman",), ("hand",)]


@given(st.sampled_from(sorted(load_lexicon().equal)), st.data())
def test_every_synonym_reveals_the_category(
    name: tuple[str, ...], data: st.DataObject
) -> None:
    other = data.draw(st.sampled_from(sorted(load_lexicon().equal[name])))
    assert (
        find_category_name(f"Which {' '.join(other)} is it?", " ".join(name))
        is not None
    )


@given(st.text(max_size=60), st.text(max_size=30))
def test_any_text_is_accepted(question: str, name: str) -> None:
    found = find_category_name(question, name)
    assert found is None or set(found.split()) <= set(split_words(question))
