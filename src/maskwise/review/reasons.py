"""Why a reviewer rejects a sample: codes for statistics, titles for people."""

REJECT_REASONS = {
    "wrong_target": "The masks show another object than the question asks for",
    "missing_target": "The masks leave out an object that the question asks for",
    "extra_target": "The masks include an object that the question does not ask for",
    "bad_mask": "A mask is too inaccurate to repair",
    "bad_amodal": "The hidden part cannot be judged from the image",
    "wrong_mask_type": "The question asks for the other mask type",
    "wrong_answer": "The answer is wrong",
    "ambiguous": "The question can be understood in several ways",
    "unanswerable": "The image does not answer the question",
    "leaks_answer": "The question names what it should only describe",
    "needs_no_image": "The question can be answered without the image",
    "bad_language": "The wording is unnatural or ungrammatical",
    "bad_image": "The image is damaged or unsuitable",
    "duplicate": "Another sample asks the same about this image",
    "unsafe": "The content is offensive or private",
    "other": "Another reason; see the note",
}
