"""Training of the mask-type classifier: sentence templates, and the fit of its weights."""
