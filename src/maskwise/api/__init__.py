"""The functions and objects of `import maskwise as mw`; `maskwise.__all__` lists them."""
