"""Property tests: enough examples to find what is wrong, no deadline, as machines that test are shared."""

from hypothesis import settings

settings.register_profile("suite", max_examples=40, deadline=None)
settings.load_profile("suite")
