"""The categories of the model are those of the world's scenes, without importing the scene generator."""

import subprocess
import sys

from maskwise.models.tiny import spec
from maskwise.world import catalogue


def test_categories_colors_materials_and_parts_are_those_of_the_world() -> None:
    assert tuple(catalogue.CATEGORIES) == spec.CATEGORY_NAMES
    assert tuple(catalogue.COLORS) == spec.COLOR_NAMES
    assert tuple(catalogue.MATERIALS) == spec.MATERIAL_NAMES
    for name, category in catalogue.CATEGORIES.items():
        assert spec.CATEGORIES[name] == (category.parts, category.colored)


def test_inference_imports_neither_the_scene_generator_nor_torch() -> None:
    code = """
import sys, maskwise.models.tiny
print([name for name in sys.modules if name.startswith(("maskwise.world", "torch"))])
"""
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == "[]"
