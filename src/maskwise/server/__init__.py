"""Pages and routes over HTTP: `maskwise serve` and `maskwise review`."""
