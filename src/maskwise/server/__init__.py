"""One model behind HTTP: `maskwise serve`."""
