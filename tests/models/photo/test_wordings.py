"""Core wordings, asked about two drawn scenes: which objects each means, and what the answer says."""

import pytest

from maskwise.models.photo.box import Box
from maskwise.models.photo.choice import Choice
from maskwise.models.photo.encoded_photo import EncodedPhoto
from maskwise.models.photo.match import MatchChooser
from tests.models.photo.scene import FrontByColor, Objects, encoded_scene

STREET: Objects = (
    ("bus", "yellow", Box(60, 40, 240, 150), 0.95),
    ("car", "white", Box(150, 110, 230, 170), 0.9),
    ("car", "red", Box(250, 120, 315, 165), 0.85),
    ("person", "blue", Box(10, 80, 35, 160), 0.9),
    ("person", "purple", Box(262, 60, 282, 118), 0.8),
    ("umbrella", "black", Box(255, 45, 290, 70), 0.7),
    ("motorcycle", "black", Box(20, 175, 70, 220), 0.6),
    ("motorcycle", "grey", Box(90, 180, 140, 225), 0.16),
    ("bench", "brown", Box(180, 185, 260, 225), 0.8),
    ("dog", "saddlebrown", Box(200, 165, 225, 195), 0.8),
    ("wheel", "black", Box(90, 125, 110, 149), 0.0),
    ("window", "white", Box(90, 42, 130, 70), 0.0),
)
BUS, WHITE_CAR, RED_CAR, LEFT_MAN, RIGHT_MAN, UMBRELLA = range(6)
MOTORCYCLE, BENCH, DOG = 6, 8, 9
WEAK_MOTORCYCLE = 7

KITCHEN: Objects = (
    ("dining table", "white", Box(10, 140, 310, 220), 0.8),
    ("cup", "red", Box(20, 100, 60, 150), 0.9),
    ("cup", "blue", Box(240, 90, 290, 150), 0.85),
    ("cup", "yellow", Box(150, 115, 180, 160), 0.75),
    ("cat", "black", Box(200, 20, 260, 88), 0.9),
    ("laptop", "grey", Box(70, 80, 130, 150), 0.85),
    ("dog", "saddlebrown", Box(30, 222, 80, 239), 0.8),
    ("ear", "pink", Box(205, 28, 235, 50), 0.0),
)
TABLE, RED_CUP, BLUE_CUP, YELLOW_CUP, CAT, LAPTOP, PUPPY = range(7)


@pytest.fixture(scope="module")
def street() -> EncodedPhoto:
    return encoded_scene(objects=STREET)


@pytest.fixture(scope="module")
def kitchen() -> EncodedPhoto:
    return encoded_scene(objects=KITCHEN)


def ask(photo: EncodedPhoto, question: str, *, guess: bool = False) -> Choice:
    (choice,) = MatchChooser(guess=guess).choose(photo, [question])
    return choice


def found(photo: EncodedPhoto, objects: Objects, choice: Choice) -> list[int]:
    """The objects whose masks were chosen, by position in the scene."""
    rows = []
    for phrase in choice.phrases:
        for region in phrase.regions:
            box = photo.proposals[region].box
            distances = [
                sum(abs(a - b) for a, b in zip(box, thing[2])) for thing in objects
            ]
            rows.append(min(range(len(objects)), key=lambda row: distances[row]))
    return sorted(rows)


HIDDEN_PARTS = [
    ("the whole bus, including what is hidden", [BUS]),
    ("the bus, with what is hidden behind the car", [BUS]),
    ("the bus, including the part behind the car", [BUS]),
    ("the bus as if the car were not there", [BUS]),
    ("the bus, even where the white car covers it", [BUS]),
    ("the complete bus, no matter what stands in front of it", [BUS]),
    ("only what is visible of the bus", [BUS]),
    ("what you can see of the bus", [BUS]),
    ("the bus, but only what is visible", [BUS]),
    ("the bus, and also what the car hides", [BUS]),
    ("Mark the bus and everything of it that is covered.", [BUS]),
    ("the bus, but not the parts you cannot see", [BUS]),
    ("Imagine the car were gone: show the bus", [BUS]),
    ("the part of the bus that the car does not hide", [BUS]),
]
FREE_RELATIVES = [
    ("what is on the bench", [DOG]),
    ("Segment what is on the bench.", [DOG]),
    ("whatever is on the bench", [DOG]),
    ("the thing that is on the bench", [DOG]),
    ("What is the dog lying on?", [BENCH]),
    ("the thing that the dog is lying on", [BENCH]),
    ("everything on the bench", [DOG]),
]
EXCEPTIONS = [
    ("all cars except the white one", [RED_CAR]),
    ("every car but the red one", [WHITE_CAR]),
    ("all cars excluding the white one", [RED_CAR]),
    ("the cars other than the red one", [WHITE_CAR]),
    ("all vehicles except the bus and the motorcycles", [WHITE_CAR, RED_CAR]),
    ("all vehicles apart from cars", [BUS, MOTORCYCLE]),
    ("all people except the leftmost", [RIGHT_MAN]),
    ("everyone but the man on the left", [RIGHT_MAN]),
]
NEGATIONS = [
    ("no motorcycle", []),
    ("not the bus", []),
    ("not the bus but the dog", [DOG]),
    ("the dog, not the bus", [DOG]),
    ("the dog and not the bus", [DOG]),
    ("the dog rather than the bench", [DOG]),
    ("neither the dog nor the bus", []),
    ("the car that is not red", [WHITE_CAR]),
    ("the car which isn't white", [RED_CAR]),
    ("the non-white car", [RED_CAR]),
    ("the person without an umbrella", [LEFT_MAN]),
    ("the person with no umbrella", [LEFT_MAN]),
    ("all people with no umbrella", [LEFT_MAN]),
    ("all the cars not in front of the bus", []),
    ("the person not holding an umbrella", [LEFT_MAN]),
    ("the bus without the car in front of it", [BUS]),
    ("the car but not the red one", [WHITE_CAR]),
]
COORDINATIONS = [
    ("the man on the left and the bus", [BUS, LEFT_MAN]),
    ("the bus and the man on the left", [BUS, LEFT_MAN]),
    ("the dog, the bus and the bench", [BUS, BENCH, DOG]),
    ("the dog on the bench and the bus", [BUS, DOG]),
    ("the white and the red car", [WHITE_CAR, RED_CAR]),
    ("the red and white cars", [WHITE_CAR, RED_CAR]),
    ("the dog as well as the bench", [BENCH, DOG]),
    ("Segment the umbrella, and the man on the left.", [LEFT_MAN, UMBRELLA]),
    ("both the bus and the bench", [BUS, BENCH]),
    ("the man on the right or the dog", [RIGHT_MAN, DOG]),
]
NUMBERS = [
    ("two motorcycles", [MOTORCYCLE, WEAK_MOTORCYCLE]),
    ("the two motorcycles", [MOTORCYCLE, WEAK_MOTORCYCLE]),
    ("both motorcycles", [MOTORCYCLE]),
    ("one of the cars", [WHITE_CAR]),
    ("two of the cars", [WHITE_CAR, RED_CAR]),
    ("2 cars", [WHITE_CAR, RED_CAR]),
    ("the second person from the left", [RIGHT_MAN]),
    ("the first and the second person from the left", [LEFT_MAN, RIGHT_MAN]),
]
RELATIONS = [
    ("the man on the left", [LEFT_MAN]),
    ("the person under the umbrella", [RIGHT_MAN]),
    ("the dog on top of the bench", [DOG]),
    ("Next to the red car, mark the person.", [RIGHT_MAN]),
    ("the man on the left side of the bus", [LEFT_MAN]),
    ("the car that is to the right of the bus", [RED_CAR]),
    ("Who is standing under the umbrella?", [RIGHT_MAN]),
]


@pytest.mark.parametrize(
    ("question", "objects"),
    [
        *HIDDEN_PARTS,
        *FREE_RELATIVES,
        *EXCEPTIONS,
        *NEGATIONS,
        *COORDINATIONS,
        *NUMBERS,
        *RELATIONS,
    ],
)
def test_wordings_about_the_street(
    street: EncodedPhoto, question: str, objects: list[int]
) -> None:
    choice = ask(street, question)
    assert found(street, STREET, choice) == objects, choice.text


@pytest.mark.parametrize(
    ("question", "objects"),
    [
        ("not the cat but the laptop", [LAPTOP]),
        ("the laptop, not the cat", [LAPTOP]),
        ("instead of the cat, show the laptop", [LAPTOP]),
        ("all cups except the leftmost", [BLUE_CUP, YELLOW_CUP]),
        ("all cups except the red one and the blue one", [YELLOW_CUP]),
        ("all the cups that are not blue", [RED_CUP, YELLOW_CUP]),
        ("the red and the blue cup", [RED_CUP, BLUE_CUP]),
        ("the red and blue cups", [RED_CUP, BLUE_CUP]),
        ("the first and third cup from the left", [RED_CUP, BLUE_CUP]),
        ("the red cup, the laptop and the cat", [RED_CUP, CAT, LAPTOP]),
        ("everything on the table except the cups", [LAPTOP]),
        ("the cups on the table", [RED_CUP, BLUE_CUP, YELLOW_CUP]),
        ("What is under the table?", [PUPPY]),
        ("the cup that is not to the left of the laptop", [BLUE_CUP]),
        ("two of the three cups", [RED_CUP, BLUE_CUP]),
        ("all animals other than dogs", [CAT]),
        ("neither the cat nor the dog", []),
        ("the animal that is not a dog", [CAT]),
        ("the outline of the cat", [CAT]),
        ("the entire shape of the laptop", [LAPTOP]),
        ("the cat with everything that is hidden of it", [CAT]),
    ],
)
def test_wordings_about_the_kitchen(
    kitchen: EncodedPhoto, question: str, objects: list[int]
) -> None:
    choice = ask(kitchen, question)
    assert found(kitchen, KITCHEN, choice) == objects, choice.text


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("How many cars?", "There are 2 cars."),
        ("How many cars are there?", "There are 2 cars."),
        ("How many buses do you see?", "There is 1 bus."),
        ("Count the people.", "There are 2 people."),
        ("What is the number of cars?", "There are 2 cars."),
        ("How many people are under the umbrella?", "There is 1 person."),
    ],
)
def test_things_are_counted(street: EncodedPhoto, question: str, answer: str) -> None:
    choice = ask(street, question)
    assert choice.text == answer
    assert choice.phrases


def test_a_number_that_is_not_reached_is_said(street: EncodedPhoto) -> None:
    choice = ask(street, "three dogs")
    assert choice.text == "They are the dogs. I find only 1 of 3."


@pytest.mark.parametrize(
    ("question", "start"),
    [
        ("the elephant", "I find no such elephant."),
        ("How many elephants?", "I find no such elephants."),
        ("the green car", "I find a car, but none that is green."),
        ("the person behind the bench", "I find a person, but none behind the bench."),
        ("the bench to the left of the bus", "I find a bench, but none to the left"),
        ("the umbrella except the black one", "I find no umbrella besides"),
        ("no motorcycle", "This leaves out the motorcycle, and asks for nothing else"),
    ],
)
def test_answers_say_what_is_missing(
    street: EncodedPhoto, question: str, start: str
) -> None:
    choice = ask(street, question, guess=True)
    assert choice.text.startswith(start), choice.text
    assert not choice.phrases


def test_a_relation_that_cannot_be_checked_is_said(street: EncodedPhoto) -> None:
    choice = ask(street, "the dog next to the elephant")
    assert choice.text == "It is the dog. I find no elephant to compare with."


PARTS = [
    "the wheel of the bus",
    "the bus's wheel",
    "the bus wheel",
    "the wheels of the yellow bus",
    "What is the wheel of the bus?",
]


@pytest.mark.parametrize("question", PARTS)
def test_a_part_is_a_guess_inside_the_whole(
    street: EncodedPhoto, question: str
) -> None:
    choice = ask(street, question, guess=True)
    assert found(street, STREET, choice) == [10], choice.text
    assert "My guess at the wheel" in choice.text


@pytest.mark.parametrize(
    "question",
    [
        *PARTS,
        "the dog's left ear",
        "the roof of the white car",
        "the car door",
        "Which part of the car does a driver hold?",
        "the flange of the bus",
    ],
)
def test_a_part_is_refused_where_nothing_may_be_guessed(
    street: EncodedPhoto, question: str
) -> None:
    choice = ask(street, question)
    assert not choice.phrases
    assert choice.text.startswith("I know whole objects, not their parts")


def test_parts_lie_where_such_parts_are(
    street: EncodedPhoto, kitchen: EncodedPhoto
) -> None:
    assert found(kitchen, KITCHEN, ask(kitchen, "the cat's ear", guess=True)) == [7]
    assert found(street, STREET, ask(street, "the roof of the bus", guess=True)) == [11]


@pytest.mark.parametrize(
    "question",
    [
        "What could a locksmith open?",
        "Which object is made of porcelain?",
        "the xylophone",
        "Please identify the tool for opening cans.",
        "When preparing dough, what object is used to knead it?",
    ],
)
def test_where_no_word_matches_a_guess_is_called_one(
    street: EncodedPhoto, question: str
) -> None:
    choice = ask(street, question, guess=True)
    assert choice.phrases
    assert "My guess is this region" in choice.text
    refused = ask(street, question)
    assert not refused.phrases
    assert refused.text.startswith("I do not know what this asks for.")


@pytest.mark.parametrize(
    "question",
    [
        "the elephant",
        "Segment the zebra.",
        "Is there anything made of porcelain?",
        "Why is the sky blue?",
        "When was the porcelain made?",
        "not the bus",
        "any xylophone",
    ],
)
def test_nothing_is_guessed_for_what_is_absent_or_not_taken_for_granted(
    street: EncodedPhoto, question: str
) -> None:
    assert not ask(street, question, guess=True).phrases


CROSSING: Objects = (
    ("car", "red", Box(60, 60, 120, 150), 0.9),
    ("bus", "blue", Box(120, 40, 260, 180), 0.9),
    ("dog", "red", Box(20, 170, 60, 200), 0.9),
    ("person", "blue", Box(280, 150, 300, 230), 0.9),
)


@pytest.mark.parametrize(
    ("question", "objects"),
    [
        ("the bus behind the car", [1]),
        ("the car in front of the bus", [0]),
        ("the car behind the bus", []),
        ("the bus in front of the car", []),
        ("What is behind the car?", [1]),
        # They do not touch: the boxes decide.
        ("the person in front of the bus", [3]),
        ("the dog behind the bus", []),
    ],
)
def test_of_objects_that_touch_the_completion_tells_which_is_behind(
    question: str, objects: list[int]
) -> None:
    photo = encoded_scene(objects=CROSSING, completion=FrontByColor())
    assert found(photo, CROSSING, ask(photo, question)) == objects
