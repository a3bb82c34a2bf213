"""Release a dataset as a version with cards, metadata and checksums, upload it, and compare two versions.

    card, release = complete_card(read_card(Path("card.yaml")), measure(dataset))   # ReleaseError lists blank fields
    release_dataset(dataset, Path("out"), card, version="1.0.0")
    push_release(Path("out"), "user/name")
    diff = diff_datasets(Dataset.open("v1"), Dataset.open("v2"))

`maskwise.formats.release_folder` describes the folder; it is read like any other dataset.
"""
