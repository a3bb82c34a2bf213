"""The content of the scenes as data: colors, materials, categories, parts, affordances, splits, presets.

To add a category: a row in CATEGORIES, its shape in `shapes/`, and its name in the supercategories and affordances it
belongs to. If people would disagree whether a category belongs (can one drink from a bottle?), it is in `unsure`, and a
question that depends on it is never asked about an image that shows it.
"""

from typing import NamedTuple

COLORS: dict[str, tuple[float, float, float]] = {
    "red": (0.8, 0.12, 0.12),
    "orange": (0.95, 0.5, 0.1),
    "yellow": (0.96, 0.82, 0.18),
    "green": (0.2, 0.58, 0.26),
    "blue": (0.14, 0.34, 0.8),
    "purple": (0.48, 0.2, 0.64),
    "pink": (0.95, 0.55, 0.7),
    "brown": (0.44, 0.27, 0.15),
    "white": (0.93, 0.92, 0.9),
    "black": (0.12, 0.12, 0.13),
    "grey": (0.52, 0.53, 0.55),
}
"""Names and red, green, blue in 0..1 of the main color of an object; a small variation is added."""

PLAIN_COLORS = ("black", "grey", "white", "brown")
"""Colors of blades, rubber, wood and lids, which an object of another main color may show too."""

ALL = tuple(COLORS)


class Material(NamedTuple):
    """Gloss in 0..1, texture name or None, and whether it can be recognised and therefore be asked for (`told`)."""

    gloss: float
    texture: str | None
    told: bool


MATERIALS: dict[str, Material] = {
    "ceramic": Material(0.55, None, False),
    "plastic": Material(0.3, None, False),
    "glass": Material(0.75, None, False),
    "metal": Material(0.8, "brushed", False),
    "wooden": Material(0.06, "wood", True),
    "fabric": Material(0.0, "cloth", False),
}


class Category(NamedTuple):
    """A category of objects.

    `parts`: the parts that its shape draws. `table`, `room`: its larger side as a fraction of the image in that
    setting, or None if it does not occur there. `flat`: it lies on the ground. `also`: synonyms. `colored`: the
    template of a colored noun. `tints`: other colors that are always or often on it. `color_on`: the parts that
    carry its color; empty means all.
    """

    plural: str
    parts: tuple[str, ...]
    materials: tuple[str, ...]
    table: float | None = None
    room: float | None = None
    colors: tuple[str, ...] = ALL
    flat: bool = False
    also: tuple[str, ...] = ()
    colored: str = "{color} {noun}"
    tints: tuple[str, ...] = ()
    color_on: tuple[str, ...] = ()


HANDLED = "{color}-handled {noun}"

CATEGORIES: dict[str, Category] = {
    "mug": Category(
        "mugs",
        ("body", "handle"),
        ("ceramic", "plastic", "metal"),
        0.29,
        also=("coffee mug",),
    ),
    "bowl": Category("bowls", ("body", "foot"), ("ceramic", "plastic", "wooden"), 0.32),
    "bottle": Category(
        "bottles",
        ("body", "neck", "cap"),
        ("glass", "plastic"),
        0.44,
        color_on=("body", "neck"),
    ),
    "wine glass": Category(
        "wine glasses",
        ("bowl", "stem", "base"),
        ("glass",),
        0.4,
        also=("wineglass",),
        tints=("red", "purple"),
    ),
    "teapot": Category(
        "teapots",
        ("body", "handle", "spout", "lid"),
        ("ceramic", "metal"),
        0.4,
        color_on=("body", "handle", "spout"),
    ),
    "pan": Category(
        "pans",
        ("body", "handle"),
        ("metal", "ceramic"),
        0.48,
        also=("frying pan", "skillet"),
        color_on=("body",),
    ),
    "knife": Category(
        "knives",
        ("blade", "handle"),
        ("plastic", "wooden"),
        0.46,
        flat=True,
        colored=HANDLED,
        color_on=("handle",),
    ),
    "fork": Category(
        "forks",
        ("tines", "handle"),
        ("plastic", "wooden"),
        0.44,
        flat=True,
        colored=HANDLED,
        color_on=("handle",),
    ),
    "spoon": Category(
        "spoons",
        ("bowl", "handle"),
        ("plastic", "wooden"),
        0.42,
        flat=True,
        colored=HANDLED,
        color_on=("handle",),
    ),
    "candle": Category(
        "candles",
        ("wax", "flame", "holder"),
        ("plastic",),
        0.38,
        tints=("yellow", "orange"),
        color_on=("wax",),
    ),
    "apple": Category(
        "apples",
        ("flesh", "stem", "leaf"),
        ("ceramic",),
        0.25,
        colors=("red", "green", "yellow"),
        tints=("green",),
        color_on=("flesh",),
    ),
    "cupcake": Category(
        "cupcakes",
        ("icing", "wrapper"),
        ("plastic",),
        0.28,
        also=("muffin",),
        tints=("red",),
        color_on=("icing",),
    ),
    "scissors": Category(
        "scissors",
        ("blades", "handles"),
        ("plastic",),
        0.44,
        flat=True,
        also=("pair of scissors",),
        colored=HANDLED,
        color_on=("handles",),
    ),
    "hammer": Category(
        "hammers",
        ("head", "handle"),
        ("plastic", "wooden"),
        0.42,
        flat=True,
        colored=HANDLED,
        color_on=("handle",),
    ),
    "book": Category(
        "books",
        ("cover", "pages", "spine"),
        ("fabric", "plastic"),
        0.4,
        color_on=("cover", "spine"),
    ),
    "laptop": Category(
        "laptops",
        ("screen", "keyboard"),
        ("plastic",),
        0.44,
        also=("notebook computer",),
        tints=("blue",),
    ),
    "clock": Category(
        "clocks",
        ("face", "hands", "frame", "feet"),
        ("metal", "plastic"),
        0.32,
        also=("alarm clock",),
        color_on=("frame",),
    ),
    "camera": Category(
        "cameras",
        ("body", "lens", "flash", "button"),
        ("plastic", "fabric"),
        0.33,
        tints=("blue",),
        color_on=("body",),
    ),
    "lamp": Category(
        "lamps",
        ("shade", "stem", "base"),
        ("fabric", "plastic", "metal"),
        0.48,
        0.52,
        tints=("yellow",),
        color_on=("shade",),
    ),
    "plant": Category(
        "plants",
        ("pot", "leaves"),
        ("ceramic", "plastic"),
        0.42,
        0.44,
        also=("potted plant",),
        colored="{noun} in the {color} pot",
        tints=("green",),
        color_on=("pot",),
    ),
    "box": Category(
        "boxes", ("body", "lid"), ("plastic", "wooden", "fabric"), 0.36, 0.34
    ),
    "teddy bear": Category(
        "teddy bears",
        ("head", "ears", "body", "arms", "legs"),
        ("fabric",),
        0.38,
        0.34,
        also=("teddy",),
    ),
    "hat": Category(
        "hats",
        ("crown", "brim", "band"),
        ("fabric",),
        0.36,
        0.3,
        color_on=("crown", "brim"),
    ),
    "toy car": Category(
        "toy cars",
        ("body", "windows", "wheels"),
        ("plastic", "metal", "wooden"),
        0.36,
        0.32,
        tints=("blue", "yellow"),
        color_on=("body",),
    ),
    "chair": Category(
        "chairs",
        ("seat", "back", "legs"),
        ("wooden", "plastic"),
        None,
        0.46,
        color_on=("seat", "back"),
    ),
    "table": Category(
        "tables", ("top", "legs"), ("wooden", "plastic"), None, 0.5, color_on=("top",)
    ),
    "sofa": Category(
        "sofas",
        ("seat", "back", "arms", "feet"),
        ("fabric",),
        None,
        0.56,
        also=("couch",),
        color_on=("seat", "back", "arms"),
    ),
    "bucket": Category(
        "buckets",
        ("body", "handle"),
        ("plastic", "metal"),
        None,
        0.34,
        also=("pail",),
        color_on=("body",),
    ),
    "broom": Category(
        "brooms",
        ("bristles", "handle"),
        ("wooden", "plastic"),
        None,
        0.5,
        tints=("yellow", "orange"),
        color_on=("handle",),
    ),
    "umbrella": Category(
        "umbrellas",
        ("canopy", "pole", "handle"),
        ("fabric",),
        None,
        0.46,
        color_on=("canopy",),
    ),
    "guitar": Category(
        "guitars",
        ("body", "neck", "head"),
        ("wooden",),
        None,
        0.56,
        color_on=("body", "head"),
    ),
    "suitcase": Category(
        "suitcases",
        ("body", "handle", "wheels"),
        ("plastic",),
        None,
        0.42,
        color_on=("body",),
    ),
    "television": Category(
        "televisions",
        ("screen", "frame", "stand"),
        ("plastic",),
        None,
        0.46,
        also=("TV",),
        tints=("blue",),
        color_on=("frame", "stand"),
    ),
}


class Supercategory(NamedTuple):
    """A noun for several categories: its members, and those about which people would disagree."""

    plural: str
    yes: tuple[str, ...]
    unsure: tuple[str, ...] = ()


SUPERCATEGORIES: dict[str, Supercategory] = {
    "piece of furniture": Supercategory(
        "pieces of furniture", ("chair", "table", "sofa"), ("lamp", "television", "box")
    ),
    "piece of cutlery": Supercategory("pieces of cutlery", ("knife", "fork", "spoon")),
    "toy": Supercategory("toys", ("teddy bear", "toy car"), ("guitar",)),
    "musical instrument": Supercategory("musical instruments", ("guitar",)),
    "piece of fruit": Supercategory("pieces of fruit", ("apple",), ("plant",)),
    "screen device": Supercategory(
        "screen devices", ("laptop", "television"), ("camera", "clock")
    ),
    "piece of kitchenware": Supercategory(
        "pieces of kitchenware",
        ("mug", "bowl", "wine glass", "teapot", "pan", "knife", "fork", "spoon"),
        ("bottle", "bucket", "candle", "scissors"),
    ),
    "tool": Supercategory(
        "tools",
        ("hammer", "scissors"),
        ("knife", "broom", "fork", "spoon", "pan", "laptop", "camera"),
    ),
}


class Affordance(NamedTuple):
    """What an object can be used for. `to` completes "something to ...", `needs` are situations that require it."""

    yes: tuple[str, ...]
    unsure: tuple[str, ...]
    to: tuple[str, ...]
    needs: tuple[str, ...]


AFFORDANCES: dict[str, Affordance] = {
    "drink": Affordance(
        ("mug", "wine glass"),
        ("bottle", "bowl", "teapot", "bucket"),
        ("drink from", "sip a drink from"),
        (
            "I am thirsty and want to raise a drink to my lips",
            "A guest has asked for something to sip from",
        ),
    ),
    "hold water": Affordance(
        ("mug", "bowl", "bottle", "wine glass", "teapot", "bucket"),
        ("plant", "pan", "hat", "box"),
        ("keep water in", "fill with water"),
        ("There is a leak and I need to catch the water",),
    ),
    "pour tea": Affordance(
        ("teapot",),
        ("bottle", "mug"),
        ("brew tea in", "pour tea from"),
        ("The tea leaves are ready and so is the hot water",),
    ),
    "cut bread": Affordance(
        ("knife",),
        ("scissors",),
        ("slice bread with", "cut a loaf with"),
        ("The loaf has to be sliced before lunch", "The butter needs spreading"),
    ),
    "cut paper": Affordance(
        ("scissors",),
        ("knife",),
        ("cut paper with", "snip a ribbon with"),
        ("I have to cut out a paper star", "The ribbon on the gift is too long"),
    ),
    "eat soup": Affordance(
        ("spoon",),
        ("fork", "bowl", "mug"),
        ("eat soup with", "stir coffee with"),
        (
            "My soup is hot and I have nothing to eat it with",
            "The sugar in my coffee needs stirring",
        ),
    ),
    "eat noodles": Affordance(
        ("fork",),
        ("spoon", "knife"),
        ("twirl spaghetti with", "spear a piece of potato with"),
        ("The spaghetti wants twirling",),
    ),
    "fry": Affordance(
        ("pan",),
        (),
        ("fry an egg in", "make pancakes in"),
        ("I am about to fry two eggs", "Pancakes are on the menu"),
    ),
    "drive a nail": Affordance(
        ("hammer",),
        (),
        ("drive a nail in with", "hang a picture with"),
        ("A nail sticks out of the wall", "I want to knock a nail into the shelf"),
    ),
    "light": Affordance(
        ("lamp", "candle"),
        ("television", "laptop"),
        ("light the room with", "brighten a dark corner with"),
        ("It is getting dark in here", "The night is coming and I want to see more"),
    ),
    "blow out": Affordance(
        ("candle",),
        (),
        ("blow out before leaving", "light with a match"),
        ("The power is out and I have a match",),
    ),
    "eat": Affordance(
        ("apple", "cupcake"),
        (),
        ("eat", "have as a snack"),
        ("I am hungry", "My stomach is rumbling"),
    ),
    "eat sweet": Affordance(
        ("cupcake",),
        ("apple",),
        ("have as a dessert", "stick a birthday candle in"),
        ("I am craving something sugary", "It is somebody's birthday"),
    ),
    "eat healthy": Affordance(
        ("apple",),
        ("cupcake",),
        ("eat as a healthy snack", "squeeze for juice"),
        ("The doctor told me to eat more fruit",),
    ),
    "read": Affordance(
        ("book",),
        ("laptop",),
        ("read in bed", "put a bookmark in"),
        ("I would like to lose myself in a novel",),
    ),
    "type": Affordance(
        ("laptop",),
        (),
        ("write an email on", "type a report on"),
        ("I have an email to answer", "The report has to be typed by noon"),
    ),
    "tell time": Affordance(
        ("clock",),
        ("laptop", "television"),
        ("tell the time by", "wake up with"),
        ("I must not be late for my train", "I have to get up at six"),
    ),
    "photograph": Affordance(
        ("camera",),
        ("laptop",),
        ("take a photograph with", "capture a memory with"),
        ("The sunset is worth a photograph",),
    ),
    "water": Affordance(
        ("plant",),
        (),
        ("water once a week", "keep alive by watering"),
        (),
    ),
    "store": Affordance(
        ("box",),
        ("suitcase", "bucket", "bowl", "hat"),
        ("store old letters in", "wrap a present in"),
        ("The old letters need a place with a cover",),
    ),
    "cuddle": Affordance(
        ("teddy bear",),
        ("sofa",),
        ("cuddle at bedtime", "hug for comfort"),
        ("The little one cannot sleep without a friend to hug",),
    ),
    "wear": Affordance(
        ("hat",),
        ("bowl", "bucket"),
        ("wear on your head", "shade your face with"),
        ("The sun burns on my head",),
    ),
    "race": Affordance(
        ("toy car",),
        ("suitcase",),
        ("race across the floor", "push along making engine noises"),
        ("A child wants to play at driving",),
    ),
    "play": Affordance(
        ("teddy bear", "toy car"),
        ("guitar", "box", "book"),
        ("give a toddler to play with", "keep a small child busy with"),
        ("A small child is visiting and is bored",),
    ),
    "sit": Affordance(
        ("chair", "sofa"),
        ("table", "box", "suitcase", "bucket"),
        ("sit on", "rest your legs on"),
        (
            "My legs are tired and I want to sit down",
            "A visitor is tired from standing",
        ),
    ),
    "nap": Affordance(
        ("sofa",),
        ("table",),
        ("take a nap on", "stretch out on"),
        ("Two friends want to sit side by side",),
    ),
    "dine": Affordance(
        ("table",),
        ("box", "chair"),
        ("lay dinner on", "gather around for a meal"),
        ("Dinner for four has to be laid somewhere",),
    ),
    "carry water": Affordance(
        ("bucket",),
        ("bottle", "bowl", "mug", "teapot"),
        ("mop the floor from", "carry water from the well in"),
        ("The floor will be mopped and the soapy water has to go somewhere",),
    ),
    "sweep": Affordance(
        ("broom",),
        (),
        ("sweep the floor with", "clear up the crumbs with"),
        ("There is dust all over the floor", "Crumbs have fallen everywhere"),
    ),
    "rain": Affordance(
        ("umbrella",),
        ("hat",),
        ("stay dry under", "keep the rain off with"),
        ("It is pouring outside and I have to go", "Dark clouds are gathering"),
    ),
    "music": Affordance(
        ("guitar",),
        ("television", "laptop"),
        ("play a tune on", "strum a song on"),
        ("Someone should accompany our singing",),
    ),
    "travel": Affordance(
        ("suitcase",),
        ("box",),
        ("pack for a flight", "take clothes on holiday in"),
        ("I am flying to Rome for a week",),
    ),
    "film": Affordance(
        ("television", "laptop"),
        (),
        ("watch a film on", "follow the news on"),
        ("There is a film tonight we should not miss",),
    ),
}


class PartAffordance(NamedTuple):
    """What a part is used for: (category, part) pairs, disputable pairs, and wordings.

    `names`: noun phrases; `asks`: questions without their question mark.
    """

    yes: tuple[tuple[str, str], ...]
    unsure: tuple[tuple[str, str], ...]
    names: tuple[str, ...]
    asks: tuple[str, ...]


PART_AFFORDANCES: dict[str, PartAffordance] = {
    "grip to slice": PartAffordance(
        (("knife", "handle"),),
        (("scissors", "handles"),),
        ("the part you grip while slicing bread",),
        ("what would you hold to cut bread",),
    ),
    "slice": PartAffordance(
        (("knife", "blade"),),
        (("scissors", "blades"),),
        ("the sharp part that goes through the loaf",),
        ("what would touch the bread when you slice it",),
    ),
    "snip": PartAffordance(
        (("scissors", "blades"),),
        (("knife", "blade"),),
        ("the parts that snip through paper",),
        ("what closes on the paper when you snip it",),
    ),
    "fingers": PartAffordance(
        (("scissors", "handles"),),
        (("mug", "handle"), ("teapot", "handle")),
        ("the rings for thumb and fingers",),
        ("where do thumb and fingers go when you snip",),
    ),
    "spear": PartAffordance(
        (("fork", "tines"),),
        (("knife", "blade"),),
        ("the prongs that spear the food",),
        ("what would you push into a potato to lift it",),
    ),
    "scoop": PartAffordance(
        (("spoon", "bowl"),),
        (),
        ("the hollow part that carries the soup",),
        ("what carries the soup to your mouth",),
    ),
    "strike": PartAffordance(
        (("hammer", "head"),),
        (),
        ("the heavy part that hits the nail",),
        ("what would meet the nail",),
    ),
    "swing": PartAffordance(
        (("hammer", "handle"),),
        (),
        ("the part you grip to hit a nail",),
        ("what would you grip to drive in a nail",),
    ),
    "fry grip": PartAffordance(
        (("pan", "handle"),),
        (),
        ("the part you hold to toss a pancake",),
        ("what would you hold to toss a pancake",),
    ),
    "sip grip": PartAffordance(
        (("mug", "handle"),),
        (("teapot", "handle"), ("wine glass", "stem")),
        ("the loop you put a finger through to sip coffee",),
        ("what would you hold while sipping hot coffee",),
    ),
    "pour": PartAffordance(
        (("teapot", "spout"),),
        (("bottle", "neck"),),
        ("the tube the tea runs out of",),
        ("where does the tea run out",),
    ),
    "refill": PartAffordance(
        (("teapot", "lid"),),
        (("box", "lid"),),
        ("the piece you take off to refill the tea",),
        ("what would you lift to look at the tea inside",),
    ),
    "unscrew": PartAffordance(
        (("bottle", "cap"),),
        (),
        ("the piece you unscrew before pouring",),
        ("what has to be unscrewed first",),
    ),
    "toast": PartAffordance(
        (("wine glass", "stem"),),
        (),
        ("the slender part you hold when making a toast",),
        ("what do fingers hold when people toast",),
    ),
    "burn": PartAffordance(
        (("candle", "flame"),),
        (),
        ("the part that would burn your finger",),
        ("what would burn your finger",),
    ),
    "melt": PartAffordance(
        (("candle", "wax"),),
        (),
        ("the part that slowly melts away",),
        ("what slowly melts away",),
    ),
    "lick": PartAffordance(
        (("cupcake", "icing"),),
        (),
        ("the sugary swirl a child would lick first",),
        ("what would a child lick first",),
    ),
    "peel": PartAffordance(
        (("cupcake", "wrapper"),),
        (),
        ("the paper you peel off before a bite",),
        ("what should be peeled off before a bite",),
    ),
    "page": PartAffordance(
        (("book", "pages"),),
        (),
        ("the part the words are printed on inside",),
        ("what do you leaf through",),
    ),
    "keys": PartAffordance(
        (("laptop", "keyboard"),),
        (),
        ("the part you type on",),
        ("where do the fingers go to write an email",),
    ),
    "watch": PartAffordance(
        (("television", "screen"), ("laptop", "screen")),
        (),
        ("the surface a film appears on",),
        ("where would a film appear",),
    ),
    "time": PartAffordance(
        (("clock", "hands"),),
        (("clock", "face"),),
        ("the pointers that show hour and minute",),
        ("what turns to show hour and minute",),
    ),
    "focus": PartAffordance(
        (("camera", "lens"),),
        (),
        ("the part light enters to make a photograph",),
        ("what gathers the light for a photograph",),
    ),
    "shade": PartAffordance(
        (("lamp", "shade"),),
        (),
        ("the cover that softens the bulb's light",),
        ("what keeps the bulb from dazzling you",),
    ),
    "soil": PartAffordance(
        (("plant", "pot"),),
        (),
        ("the container that holds soil and roots",),
        ("what holds the soil and the roots",),
    ),
    "foliage": PartAffordance(
        (("plant", "leaves"),),
        (("apple", "leaf"),),
        ("the living green part that turns to the sun",),
        ("what grows and turns towards the sun",),
    ),
    "open box": PartAffordance(
        (("box", "lid"),),
        (("teapot", "lid"),),
        ("the cover you lift to look inside a carton",),
        ("what has to be lifted to look inside the carton",),
    ),
    "listen": PartAffordance(
        (("teddy bear", "ears"),),
        (),
        ("the parts the toy would listen with",),
        ("what would the toy listen with if it were alive",),
    ),
    "sun": PartAffordance(
        (("hat", "brim"),),
        (("umbrella", "canopy"),),
        ("the edge that keeps the sun out of your eyes",),
        ("what keeps the sun out of the wearer's eyes",),
    ),
    "roll": PartAffordance(
        (("toy car", "wheels"), ("suitcase", "wheels")),
        (),
        ("the round parts that roll",),
        ("what turns when it is pushed along the floor",),
    ),
    "windscreen": PartAffordance(
        (("toy car", "windows"),),
        (),
        ("the panes a tiny driver would look through",),
        ("what would a tiny driver look through",),
    ),
    "lean": PartAffordance(
        (("chair", "back"), ("sofa", "back")),
        (),
        ("the part you lean against while sitting",),
        ("what would you lean against while sitting",),
    ),
    "seat": PartAffordance(
        (("chair", "seat"), ("sofa", "seat")),
        (),
        ("the part that carries your weight when you sit",),
        ("where would you put your bottom to rest",),
    ),
    "elbows": PartAffordance(
        (("sofa", "arms"),),
        (),
        ("the sides you rest your elbows on",),
        ("where do the elbows rest",),
    ),
    "support": PartAffordance(
        (("chair", "legs"), ("table", "legs")),
        (("sofa", "feet"), ("television", "stand"), ("teddy bear", "legs")),
        ("the posts that keep the seat or board off the floor",),
        ("what keeps the seat or board off the floor",),
    ),
    "lay": PartAffordance(
        (("table", "top"),),
        (),
        ("the surface plates would be set on",),
        ("where would the plates be set",),
    ),
    "carry": PartAffordance(
        (("bucket", "handle"),),
        (("suitcase", "handle"),),
        ("the hoop you lift the water with",),
        ("what would you grab to carry the water",),
    ),
    "pull": PartAffordance(
        (("suitcase", "handle"),),
        (("bucket", "handle"),),
        ("the bar you pull through the airport",),
        ("what would you pull on the way to the gate",),
    ),
    "dust": PartAffordance(
        (("broom", "bristles"),),
        (),
        ("the part that sweeps up the dust",),
        ("what touches the floor while sweeping",),
    ),
    "rain cover": PartAffordance(
        (("umbrella", "canopy"),),
        (),
        ("the part the raindrops fall on",),
        ("what would the raindrops fall on",),
    ),
    "chords": PartAffordance(
        (("guitar", "neck"),),
        (),
        ("the part where fingers press the chords",),
        ("where do the fingers press the chords",),
    ),
}

ABSENT_CATEGORIES: tuple[tuple[str, str], ...] = (
    ("elephant", "elephants"),
    ("zebra", "zebras"),
    ("dog", "dogs"),
    ("cat", "cats"),
    ("bicycle", "bicycles"),
    ("airplane", "airplanes"),
    ("boat", "boats"),
    ("piano", "pianos"),
    ("microwave", "microwaves"),
    ("horse", "horses"),
    ("traffic light", "traffic lights"),
    ("kite", "kites"),
    ("pizza", "pizzas"),
    ("banana", "bananas"),
    ("violin", "violins"),
    ("refrigerator", "refrigerators"),
    ("surfboard", "surfboards"),
    ("toothbrush", "toothbrushes"),
    ("football", "footballs"),
    ("parrot", "parrots"),
    ("bathtub", "bathtubs"),
    ("telephone", "telephones"),
    ("backpack", "backpacks"),
    ("shoe", "shoes"),
    ("ladder", "ladders"),
)
"""Categories that never occur, singular and plural."""

CONFUSABLE: dict[str, tuple[str, ...]] = {
    "bowl": ("spoon", "wine glass"),
    "box": ("suitcase",),
}
"""Categories whose absence is disputable if one of these is visible: a spoon has a bowl."""

SETTINGS = ("table", "room")


class SplitSettings(NamedTuple):
    """How scenes of a split differ.

    `objects`: the smallest and the largest number. `occlusion_rate`: how often an object is placed in front of
    another; `occluded_share`: the fraction of that other which it then hides. `held_out_colors`: fraction of objects
    in held-out colors. `held_out_wordings`: fraction of questions in held-out wordings.
    """

    number: int
    objects: tuple[int, int]
    occlusion_rate: float
    occluded_share: tuple[float, float]
    held_out_colors: float
    held_out_wordings: float


SPLITS: dict[str, SplitSettings] = {
    "train": SplitSettings(0, (3, 7), 0.75, (0.1, 0.5), 0.0, 0.0),
    "val": SplitSettings(1, (3, 7), 0.75, (0.1, 0.5), 0.0, 0.0),
    "test": SplitSettings(2, (5, 8), 0.9, (0.2, 0.65), 0.4, 0.6),
}


class ScenePreset(NamedTuple):
    """A variant of the scenes of every split.

    `categories`: only these occur; empty means all. `scale`: factor of the object sizes. `objects`, `occlusion_rate`,
    `occluded_share`: as in SplitSettings, instead of the split's.
    """

    categories: tuple[str, ...] = ()
    objects: tuple[int, int] | None = None
    scale: float = 1.0
    occlusion_rate: float | None = None
    occluded_share: tuple[float, float] | None = None


PRESETS: dict[str, ScenePreset] = {
    "default": ScenePreset(),
    "easy": ScenePreset(
        ("mug", "bottle", "teapot", "apple", "box", "suitcase", "chair", "lamp"),
        objects=(2, 3),
        scale=1.5,
    ),
    "crowded": ScenePreset(
        objects=(4, 9), occlusion_rate=0.9, occluded_share=(0.15, 0.75)
    ),
}


def _held_out() -> dict[str, frozenset[str]]:
    held = {}
    for number, (name, category) in enumerate(CATEGORIES.items()):
        colors = category.colors
        steps = (2 * number, 2 * number + 5) if len(colors) > 5 else (number,)
        held[name] = frozenset(colors[step % len(colors)] for step in steps)
    return held


HELD_OUT = _held_out()
"""Colors that each category has in the test split only: two of eleven, or one of three."""
