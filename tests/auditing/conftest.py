"""Runs of the tests of reports, for rescoring."""

from tests.report.conftest import toy

__all__ = ["toy"]
