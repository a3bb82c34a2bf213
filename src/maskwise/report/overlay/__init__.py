"""Draw regions on an image so that the visible part, the hidden part and the complete extent can be told apart.

    visible part    light fill, solid outline
    hidden part     stripes
    amodal extent   dashed outline where it leaves the visible part
    ignored pixels  grey hatching

Each region has one color of the Okabe-Ito palette, which stays distinct for color-blind readers; the stripe direction
changes from region to region as well. Names are written on the regions. A legend and, if given, the question and its
answer are written below the image.
"""

from maskwise.report.overlay.canvas import PALETTE, Drawable
from maskwise.report.overlay.draw import draw_overlay
from maskwise.report.overlay.side_by_side import draw_comparison

__all__ = ["PALETTE", "Drawable", "draw_comparison", "draw_overlay"]
