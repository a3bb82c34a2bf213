"""English: tokens, word forms, lexicons, and which mask type the words of a question ask for.

tokens           a text as words with their offsets
phrases          phrases of a table, found among tokens
word_forms       plurals, singulars, articles, verb forms, enumerations
answers          sentences that name the targets of a question
category_names   does a text name a category: by its name, a synonym, a plural or a compound?
requests         a request reduced to its noun phrase
lexicons         the word lists, as text files, and how they are read
intent           the classifier of mask types

Two tokenizers are not here. Trained weights depend on the exact tokens of `models/tiny/tokenizer.py` and of
`intent/spelling.py`; docs/decisions/0025-language.md says why they stay as they are.
"""
