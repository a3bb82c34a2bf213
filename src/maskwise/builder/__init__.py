"""Build datasets: recipes that turn annotated images into benchmark data."""
