"""What a person reads: overlays, tables, pages."""
