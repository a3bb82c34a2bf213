"""Bring the generated parts of all documents up to date: `make tree`, or `python -m docs.generate`."""

from docs.generate.documents import write_documents

write_documents()
