"""Random datasets on small images, and random predictions to them."""

import numpy as np
from hypothesis import strategies as st

from maskwise.masks import Mask
from maskwise.schema import Answer, PredictedRegion, Prediction, Region, Sample
from tests.protocols.small_cases import answer_with_phrases

FRAME = (4, 5)
PIXELS = FRAME[0] * FRAME[1]
NAMES = ("cup", "cup:handle", "The knife_1's blade", "dog")

masks = st.one_of(
    st.just(0),
    st.integers(0, 2**PIXELS - 1),
    st.integers(0, 2**PIXELS - 1).map(lambda bits: bits & (bits >> 3)),
).map(
    lambda bits: Mask.from_dense(
        np.array([bits >> k & 1 for k in range(PIXELS)], bool).reshape(FRAME)
    )
)


@st.composite
def regions(draw, kind):
    visible, amodal = draw(
        st.one_of(
            st.tuples(masks, st.none()),
            st.tuples(st.none(), masks),
            st.tuples(masks, masks),
            masks.flatmap(
                lambda whole: st.tuples(
                    masks.map(lambda cut: whole & cut), st.just(whole)
                )
            ),
        )
    )
    if kind is PredictedRegion:
        return PredictedRegion(
            visible=visible,
            amodal=amodal,
            score=draw(st.floats(0, 1)),
            name=draw(st.one_of(st.none(), st.sampled_from(NAMES))),
        )
    return Region(
        id="r", name=draw(st.sampled_from(NAMES)), visible=visible, amodal=amodal
    )


@st.composite
def datasets(draw, most=5):
    """Samples whose regions have their own ids."""
    samples = []
    for number in range(draw(st.integers(1, most))):
        drawn = draw(st.lists(regions(Region), max_size=3))
        targets = tuple(
            Region(
                id=f"{number}-{k}",
                name=one.name,
                visible=one.visible,
                amodal=one.amodal,
            )
            for k, one in enumerate(drawn)
        )
        samples.append(
            Sample(
                id=f"s{number}",
                image_id=f"p{draw(st.integers(0, 2))}",
                question="?",
                mask_type=draw(st.sampled_from(["visible", "amodal", "both"])),
                targets=targets,
                answer=draw(st.sampled_from([None, Answer(text="a dog")])),
                ignore=draw(st.one_of(st.none(), st.none(), masks)),
                tags=draw(
                    st.dictionaries(
                        st.sampled_from(["source", "split"]), st.sampled_from("xyz")
                    )
                ),
            )
        )
    return samples


@st.composite
def predictions_for(draw, samples):
    """PredictionColumns to some of the samples: wrong, right in part, silent, failed."""
    out = []
    for sample in samples:
        if draw(st.integers(0, 9)) == 0:
            continue
        copied = [
            PredictedRegion(
                visible=target.visible, amodal=target.amodal, name=target.name
            )
            for target in sample.targets
            if draw(st.booleans())
        ]
        parts = draw(
            st.permutations(
                copied + draw(st.lists(regions(PredictedRegion), max_size=2))
            )
        )
        answer = draw(
            st.one_of(
                st.none(),
                st.just(Answer(text="a dog")),
                st.just(answer_with_phrases([[k] for k in range(len(parts))]))
                if parts
                else st.none(),
            )
        )
        out.append(
            Prediction(
                sample=sample.id,
                regions=tuple(parts),
                answer=answer,
                mask_type=draw(
                    st.sampled_from(
                        [None, sample.mask_type, "visible", "amodal", "both"]
                    )
                ),
                no_target=draw(st.integers(0, 5)) == 0,
                error=draw(st.sampled_from([None] * 6 + ["out of memory"])),
            )
        )
    return out
