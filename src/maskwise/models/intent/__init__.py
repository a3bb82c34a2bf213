"""Which mask a question wants, from its words alone: the visible one, or the amodal one with the hidden part.

    decide(["the cup behind the teapot"])   [Intent("visible", 0.99)]

A question wants the amodal mask only when its words ask for what is hidden, as R2SM defines it (arXiv 2506.01795);
hiding that merely says where something is stays visible. `docs/intent.md` tells how it was made and how well it does.
"""

from maskwise.models.intent.decision import Intent, decide, hash_decider
from maskwise.models.intent.reading import Wanted

__all__ = ["Intent", "Wanted", "decide", "hash_decider"]
