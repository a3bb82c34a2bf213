"""maskwise: ask for what you see, or for what is hidden."""

__version__ = "0.1.0"
