"""Without the extra `vlm` there is nothing to test here."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("transformers") and find_spec("peft") else ["*"]
