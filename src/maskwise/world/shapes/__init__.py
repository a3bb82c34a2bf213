"""Shapes of the categories: one function per category.

Every call builds a random variant. Lengths are in shape units: an object is about one
or two units large, and its category's size in the image is applied later. x points
right, y up, z towards the viewer; the ground is y = 0 and the object stands at x = 0,
z = 0. Angles are in radians.

Ranges and proportions were chosen by eye, so that all variants of a category are
recognizable and no two look alike; a comment names the reason where there is another.
The order and number of random numbers are part of a shape: changing them changes every
scene of the published dataset. Facets are added from the back to the front.
"""

from collections.abc import Callable

from maskwise.world.facets import FacetBuilder
from maskwise.world.random_streams import RandomStream
from maskwise.world.shapes import desk, furniture, house, kitchen

DrawShape = Callable[[FacetBuilder, RandomStream], None]

SHAPES: dict[str, DrawShape] = {
    "mug": kitchen.mug,
    "bowl": kitchen.bowl,
    "bottle": kitchen.bottle,
    "wine glass": kitchen.wine_glass,
    "teapot": kitchen.teapot,
    "pan": kitchen.pan,
    "knife": kitchen.knife,
    "fork": kitchen.fork,
    "spoon": kitchen.spoon,
    "candle": kitchen.candle,
    "apple": kitchen.apple,
    "cupcake": kitchen.cupcake,
    "scissors": desk.scissors,
    "hammer": desk.hammer,
    "lamp": desk.lamp,
    "book": desk.book,
    "laptop": desk.laptop,
    "clock": desk.clock,
    "camera": desk.camera,
    "plant": house.plant,
    "box": house.box,
    "teddy bear": house.teddy_bear,
    "hat": house.hat,
    "toy car": house.toy_car,
    "bucket": house.bucket,
    "broom": house.broom,
    "umbrella": house.umbrella,
    "guitar": house.guitar,
    "suitcase": house.suitcase,
    "television": house.television,
    "chair": furniture.chair,
    "table": furniture.table,
    "sofa": furniture.sofa,
}
