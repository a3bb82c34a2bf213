"""Parts of the documents that are written from the code: `make tree`."""
