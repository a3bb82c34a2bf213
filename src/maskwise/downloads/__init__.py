"""Download publicly hosted benchmarks and weights: verified, resumable, and never without naming the license.

    table.list_downloads()                  what is known, from downloads.yaml
    local_files.find_weights(name)          the path of a verified file, for models
    get.get_weights(download)               download it if it is not there yet
    get.get_dataset(download, consent=Consent(license=True))

`downloads.yaml` lists what is known: addresses, sizes, sha256, licenses. Files are kept in the folders that the
environment variables MASKWISE_WEIGHTS and MASKWISE_DATA name, or in the user's cache.
The package imports none of its modules: `maskwise ls` needs the table alone.
"""
