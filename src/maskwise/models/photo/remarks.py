"""Remarks of a question about what is hidden or shown. They decide the mask type and name no further object.

    "the bus, with what is hidden behind the car"    asks for the bus; the car only tells what hides it

The intent classifier (language/intent) reads the mask type from the whole question. What is found here is left out
where the question is searched for objects.
"""

import re

Span = tuple[int, int]
"""Start and stop of a remark in the text."""

CUE = (
    r"(?:hid(?:es?|den|ing)|occlud\w+|cover(?:s|ed|ing)|conceal\w*|obscur\w+|block(?:s|ed|ing)|invisible|unseen|"
    r"visible|seen?|shows?|showing|exposed|uncovered|out of sight|in view|in front|in the way|cut off|behind|under|"
    r"beneath|underneath)"
)
"""Words by which a remark speaks of what is hidden or shown."""

SOME_PART = (
    r"(?:what(?:ever)?|(?:(?:the|any|all|its|every|also|only|just|even) )*"
    r"(?:parts?|portions?|pixels?|areas?|bits?|pieces?|regions?|sections?|rest|everything|anything|that|those))"
)
"""How a remark refers to pixels of the object: "what ...", "the parts ..."."""

SUBJECT_OF_SEEING = r"(?:you|we|one|i|the camera|anyone)"

SHOWN_PART_OF = re.compile(
    rf"\b(?:(?:only|just|exactly) )?(?:what(?:ever)?|everything|all|as much as)(?: that)? "
    rf"(?:{SUBJECT_OF_SEEING} (?:can |could |do |may )?|(?:is|are|remains?|can be|could be|may be) )?"
    rf"(?:still |actually |directly )?{CUE} (?:of|from) (?=\w)",
    re.IGNORECASE,
)
"""In front of the object: "what is visible of the bus", "as much as you can see of the bus"."""

ADDED_PART = re.compile(
    r",?\s*\b(?:including|includes?|with|plus|and|even|but|not|without|only|just|as well as|excluding|ignoring|"
    r"leaving out|omitting|together with|along with|counting)\s+(?:(?:also|even|not|only|just|all|in|the) )*"
    rf"{SOME_PART}\b(?: of (?:it|them|its?elf))?"
    rf"(?: (?:that|which))?(?: \w+){{0,4}}? {CUE}\b[^,.;:?!]*",
    re.IGNORECASE,
)
"""After the object: "including what is hidden", "and the part behind the car", "but not the parts you cannot see"."""

INCLUDED_PART = re.compile(
    rf"(?:,|,? (?:and|with))\s+(?:(?:the|its|their|any|all|every|also|even) )*{CUE} "
    r"(?:parts?|portions?|pixels?|areas?|bits?|pieces?|regions?|sections?)"
    r"(?: \w+){0,2}? (?:included|inclusive|counted|too|as well|and all)\b",
    re.IGNORECASE,
)
"""After the object: ", hidden parts included", "and its covered part as well"."""

SUPPOSITION = re.compile(
    r",?\s*\b(?:as if|as though|even (?:if|where|though|when)|no matter (?:what|how|where)|regardless of|"
    r"irrespective of|despite|imagin(?:e|ing)|assum(?:e|ing)|pretend(?:ing)?|suppos(?:e|ing))\b[^,.;:?!]*"
    rf"(?:{CUE}|\b(?:there|gone|removed|missing|away|absent|exists?|transparent|moved|invisible))\b[^,.;:?!]*",
    re.IGNORECASE,
)
"""A condition: "as if the car were not there", "even where the couch covers it"."""

AFTER_OBJECT = (ADDED_PART, INCLUDED_PART, SUPPOSITION)


def find_remarks(text: str) -> list[Span]:
    """The remarks of a text, in no certain order."""
    remarks = [match.span() for match in SHOWN_PART_OF.finditer(text)]
    for pattern in AFTER_OBJECT:
        for match in pattern.finditer(text):
            start, stop = match.span()
            # "only what is visible of the bus" goes on with the object.
            if not any(
                start < other_stop and other_start < stop
                for other_start, other_stop in remarks
            ):
                remarks.append((start, stop))
    return remarks
