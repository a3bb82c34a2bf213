"""HTTP: a model behind a server, and its documents; needs the extra `web`."""
