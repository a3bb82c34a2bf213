import pytest

from maskwise.world import Scene, make_scene

SCENES = {"train": 24, "val": 6, "test": 24}


@pytest.fixture(scope="session")
def scenes() -> list[Scene]:
    """Scenes of every split, made once."""
    return [
        make_scene(11, index, split)
        for split, count in SCENES.items()
        for index in range(count)
    ]
