"""Property tests: enough examples to find what is wrong, no deadline, as machines that test are shared.

Where CI is set the examples are the same every time: a submission is judged by what it changes, not by luck. At home
they differ from run to run and so keep finding things.
"""

import os

from hypothesis import settings

settings.register_profile(
    "suite", max_examples=40, deadline=None, derandomize="CI" in os.environ
)
settings.load_profile("suite")
