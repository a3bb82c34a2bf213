"""Check that a question is in English, the only language the classifier is trained for."""

import re
from collections.abc import Container

FUNCTION_WORDS = {
    "Danish, Norwegian, Swedish": "og och det den der som ikke inte på til till med av af är för ett hele hela",
    "Dutch": "het een niet achter welke waar hele deel zijn wordt zichtbare ik wat dat deze naar voor",
    "Finnish": "ja mikä missä koko ei joka takana kuka näkyvä osa",
    "French": "les des du est qui que quoi quel quelle où derrière entier entière toute partie une dans sur avec pas",
    "German": "der das und ist nicht mit ein eine einen dem hinter ganze ganzen welche wo teil auch auf zeige bitte",
    "Indonesian, Malay": "yang dan di ini itu seluruh bagian belakang mana apa dengan adalah",
    "Italian": "il lo gli che è dietro intero intera tutta parte una del della quale dove sono mostra anche",
    "Polish": "jest nie się za cały cała który która gdzie oraz część pokaż",
    "Portuguese": "os uma um que não com atrás inteiro inteira parte qual onde dos das está mostre são",
    "Spanish": "el los las una que qué detrás entero entera parte cuál dónde del por para está muestra",
    "Turkish": "ve bir bu nerede hangi tüm arkasındaki değil ile olan göster",
    "Vietnamese": "là của và không phía toàn bộ phần nào đâu",
}
"""Frequent words by language, for languages written in Latin letters."""

SHARED_WORDS = (
    *(
        "a",
        "an",
        "as",
        "at",
        "am",
        "die",
        "do",
        "den",
        "de",
        "la",
        "le",
        "is",
        "in",
        "on",
        "of",
        "men",
        "war",
        "was",
    ),
    *(
        "hat",
        "van",
        "no",
        "me",
        "so",
        "we",
        "he",
        "her",
        "his",
        "also",
        "over",
        "under",
        "arm",
        "hand",
        "land",
        "ball",
    ),
    *(
        "bus",
        "auto",
        "radio",
        "hotel",
        "taxi",
        "pizza",
        "sofa",
        "piano",
        "visible",
        "total",
        "real",
        "original",
    ),
    *(
        "animal",
        "un",
        "en",
        "o",
        "y",
        "e",
        "i",
        "es",
        "per",
        "con",
        "non",
        "son",
        "par",
        "long",
        "sac",
        "lit",
        "pain",
    ),
    *("chat", "table", "train", "ours", "et", "er", "se", "ne", "na"),
)
"""Words that English shares with other languages: no evidence for either."""

_FOREIGN = frozenset(" ".join(FUNCTION_WORDS.values()).split()).difference(SHARED_WORDS)
_WORD = re.compile(r"[^\W\d_]+")
_UNSPACED = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\U00020000-\U0003ffff]"
)
"""Scripts written without spaces between words; each character counts as a word."""

MAX_UNKNOWN_WORDS = 2
"""A question without any known English word and with more words than this is not taken for English."""


def english_share(text: str, vocabulary: Container[str]) -> float:
    """The share of a text's words that are known English words, in [0, 1]; 1 for text without letters."""
    english, _, words = _count(text, vocabulary)
    return english / words if words else 1.0


def is_english(text: str, vocabulary: Container[str]) -> bool:
    """Whether a text is plausibly English: more known English words than words of other languages.

    Unknown words count for neither, so that names of rare objects are accepted.
    """
    english, foreign, words = _count(text, vocabulary)
    return (
        foreign <= english
        and (english > 0 or words <= MAX_UNKNOWN_WORDS)
        and (foreign == 0 or english > 0)
    )


def _count(text: str, vocabulary: Container[str]) -> tuple[int, int, int]:
    """Known English words, words of other languages, and all words."""
    words = _WORD.findall(_UNSPACED.sub(lambda found: f" {found[0]} ", text.lower()))
    english = sum(word in vocabulary and word not in SHARED_WORDS for word in words)
    foreign = sum(
        word in _FOREIGN or not word.isascii()
        for word in words
        if word not in vocabulary
    )
    return english, foreign, len(words)
