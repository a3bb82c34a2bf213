"""Tests of `import maskwise as mw`."""
