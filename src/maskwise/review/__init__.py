"""Review of datasets by people: queue, decisions, audit log, agreement and export, on SQLite or PostgreSQL."""
