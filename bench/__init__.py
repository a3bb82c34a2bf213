"""Measurements beside the public libraries, in one run; `make bench` writes RESULTS.md."""
