"""Identifiers that the header of a dataset card may hold: licenses of the Hugging Face hub, and codes of languages."""

import re
from pathlib import Path

from maskwise.errors import ReleaseError, did_you_mean

LICENSES = tuple(
    Path(__file__).with_name("hub_licenses.txt").read_text(encoding="utf-8").split()
)
"""Licenses that the hub knows. `other` is for any license without an identifier."""

LANGUAGES = {
    "english": "en",
    "german": "de",
    "french": "fr",
    "spanish": "es",
    "chinese": "zh",
    "japanese": "ja",
}
"""Language codes of names."""


def check_license(identifier: str) -> None:
    """ReleaseError unless the hub knows this license."""
    if identifier not in LICENSES:
        raise ReleaseError(
            f"release.license: {identifier!r} is no identifier of the Hugging Face hub. Use `other` for a license that "
            f"is not among them, and describe it in data_licensing; known: {', '.join(LICENSES)}"
            f"{did_you_mean(identifier, LICENSES)}"
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
    """Whether a license in words, such as `CC BY 4.0 (author)`, is the license of this identifier."""
    words = re.findall(r"[a-z0-9.+]+", re.sub(r"\(.*?\)", "", text.lower()))
    return "-".join(words) == identifier
