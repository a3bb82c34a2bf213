"""Shapes of the categories: one function per category, which builds a random variant at every call."""

from collections.abc import Callable

from maskwise.world.facets import FacetBuilder
from maskwise.world.random_streams import RandomStream
from maskwise.world.shapes import desk, furniture, house, kitchen

SHAPES: dict[str, Callable[[FacetBuilder, RandomStream], None]] = {
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
