"""Download publicly hosted benchmarks and weights: verified, resumable, and never without naming the license.

    find_weights("yolox_nano.onnx")                  the path of a verified file, for models
    get_weights(find_download("yolox_nano.onnx"))    download it if it is not there yet
    get_dataset(find_download("reasonseg_val"), consent=Consent(license=True))

`downloads.yaml` lists what is known: addresses, sizes, sha256, licenses. Files are kept in the folders that the
environment variables MASKWISE_WEIGHTS and MASKWISE_DATA name, or in the user's cache.
"""

from maskwise.downloads.get import Consent, get_dataset, get_weights
from maskwise.downloads.local_files import (
    data_folder,
    find_all_weights,
    find_weights,
    weights_folder,
)
from maskwise.downloads.table import (
    Download,
    FileVersion,
    HostedFile,
    find_download,
    list_downloads,
)

__all__ = [
    "Consent",
    "Download",
    "FileVersion",
    "HostedFile",
    "data_folder",
    "find_all_weights",
    "find_download",
    "find_weights",
    "get_dataset",
    "get_weights",
    "list_downloads",
    "weights_folder",
]
