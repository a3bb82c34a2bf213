"""Dataset folders, memory-mapped, and append-only logs that survive a kill at any byte.

Write a dataset in one pass with bounded memory; the folder appears when the block ends without an error:

    with DatasetWriter("out/val", name="my benchmark", image_root="/data/coco") as writer:
        writer.add_image(ImageInfo(id="1", width=640, height=480, path="val/1.jpg"), regions)
        writer.add_sample(Sample(id="1-0", image_id="1", question="...", targets=(region,)))

Read records:

    dataset = Dataset.open("out/val")             # milliseconds; masks stay on disk until used
    len(dataset), dataset[0], dataset[10:20], dataset.sample("1-0")
    for sample in dataset: ...                    # streams
    for image, samples in dataset.groups(): ...   # all samples of an image together
    dataset.filter(mask_type="amodal")            # a view; also by tags or by a function of the sample
    dataset.shard(0, 8)                           # a view; the samples of an image stay together
    dataset.take(rows)                            # a view of some rows, in any order
    dataset.image("1"), dataset.regions_of("1"), dataset.open_image("1")
    dataset.verify()                              # sha256 of every file

Read columns, numpy arrays that share the memory of the file (n samples, m regions, p images):

    dataset.samples.id, .question        list of str [n]
    dataset.samples.image                int32 [n], row of the image
    dataset.samples.size                 int32 [n, 2], height and width of that image
    dataset.samples.mask_type            int8 [n], position in MASK_TYPES
    dataset.samples.targets              RaggedInts(offsets int64 [n + 1], values int32 [k]): region rows
    dataset.samples.ignore               MaskColumn(masks: Masks of n, present: bool [n])
    dataset.samples.tag("split")         Codes(codes int32 [n], names); names holds None if some lack the tag
    dataset.samples.tag_names            list of str
    dataset.regions.id, .name            list of str [m]; Codes of m
    dataset.regions.masks("visible")     MaskColumn of m; also "amodal", "overlap"
    dataset.regions.image, .size         int32 [m], int32 [m, 2]
    dataset.regions.part_of, .order      NullableInts(values int32 [m], present bool [m])
    dataset.regions.crowd                bool [m]
    dataset.images.id, .path, .size      list of str [p]; list of str or None; int32 [p, 2] height, width
    dataset.images.license, .attribution list of str or None [p]

The union of the visible targets of each sample, without a Python loop:

    targets, visible = dataset.samples.targets, dataset.regions.masks("visible")
    union = visible.masks[targets.values].merge(targets.offsets, dataset.samples.size)

A view (slice, filter, shard, take) has its own samples; images and regions are shared, so row numbers stay valid. Where
a mask is not present, its place in the batch holds an empty 0 x 0 mask.

Logs, one JSON record per line:

    with Log("run/predictions.jsonl", Prediction) as log:
        log.append(prediction)                    # handed to the system when this returns
    for prediction in Log("run/predictions.jsonl", Prediction): ...

The folder holds `images.arrow`, `regions.arrow`, `samples.arrow` (Arrow IPC, not compressed) or the same tables as
`.parquet`, and `manifest.json`, written last.
"""

from maskwise.schema import MASK_TYPES
from maskwise.store.columns import Codes, MaskColumn, NullableInts, RaggedInts
from maskwise.store.dataset import Dataset
from maskwise.store.folder import (
    MASK_KINDS,
    SCHEMA_VERSION,
    Manifest,
    MaskKind,
    read_manifest,
)
from maskwise.store.log import Log
from maskwise.store.writer import DatasetWriter

__all__ = [
    "MASK_KINDS",
    "MASK_TYPES",
    "SCHEMA_VERSION",
    "Codes",
    "Dataset",
    "DatasetWriter",
    "Log",
    "Manifest",
    "MaskColumn",
    "MaskKind",
    "NullableInts",
    "RaggedInts",
    "read_manifest",
]
