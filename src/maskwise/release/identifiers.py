"""Identifiers that the header of a dataset card may hold: licences of the Hugging Face hub, and codes of languages."""

import re
from pathlib import Path

from maskwise.errors import ReleaseError, did_you_mean

LICENCES = tuple(
    Path(__file__).with_name("hub_licences.txt").read_text(encoding="utf-8").split()
)
"""Licences that the hub knows. `other` is for any licence without an identifier."""

LANGUAGES = {
    "english": "en",
    "german": "de",
    "french": "fr",
    "spanish": "es",
    "chinese": "zh",
    "japanese": "ja",
}
"""Language codes of names."""


def check_licence(identifier: str) -> None:
    """ReleaseError unless the hub knows this licence."""
    if identifier not in LICENCES:
        raise ReleaseError(
            f"release.license: {identifier!r} is no identifier of the Hugging Face hub. Use `other` for a licence that "
            f"is not among them, and describe it in data_licensing; known: {', '.join(LICENCES)}"
            f"{did_you_mean(identifier, LICENCES)}"
        )


def to_language_code(language: str) -> str:
    """The code of a language given by its code of two or three letters, or by a known name."""
    code = LANGUAGES.get(language.lower(), language.lower())
    if re.fullmatch("[a-z]{2,3}", code) is None:
        raise ReleaseError(
            f"benchmark_details.languages: {language!r} is no code of two or three letters, such as en or deu; known "
            f"names: {', '.join(name.title() for name in LANGUAGES)}"
        )
    return code


def same_terms(text: str, identifier: str) -> bool:
    """Whether a licence in words, such as `CC BY 4.0 (author)`, is the licence of this identifier."""
    words = re.findall(r"[a-z0-9.+]+", re.sub(r"\(.*?\)", "", text.lower()))
    return "-".join(words) == identifier
