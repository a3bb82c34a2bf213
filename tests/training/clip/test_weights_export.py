"""CLIP's checkpoint as ONNX files; weights are random, sizes small, names and forms the real ones."""

import gzip
import shutil
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

torch = pytest.importorskip("torch", reason="the export needs torch")

from maskwise.downloads.get import get_group, get_weights
from maskwise.downloads.local_files import trust
from maskwise.downloads.table import find_download
from maskwise.errors import DownloadError
from maskwise.models.photo.clip import Clip
from maskwise.models.photo.model import load
from maskwise.store.folder import file_facts
from maskwise.training.clip.network import ClipShape, ImageEncoder, TextEncoder
from maskwise.training.clip.weights_export import (
    IMAGE_FILE,
    TEXT_FILE,
    export_file,
    read_checkpoint,
)
from tests.models.photo.scene import draw_scene, fake_networks

SMALL = ClipShape(
    image_width=128,
    image_layers=2,
    vocabulary_size=600,
    text_width=64,
    text_layers=2,
    embedding_width=32,
)


class Checkpoint(torch.nn.Module):
    """The authors' archive: one module with both networks, and settings that are no weights."""

    def __init__(self) -> None:
        super().__init__()
        self.visual = ImageEncoder(SMALL)
        text = TextEncoder(SMALL)
        for name, child in text.named_children():
            self.add_module(name, child)
        for name, parameter in text.named_parameters(recurse=False):
            self.register_parameter(name, parameter)
        self.register_buffer("input_resolution", torch.tensor(224))
        self.register_buffer("context_length", torch.tensor(77))
        self.register_buffer("vocab_size", torch.tensor(600))

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        return self.visual(pixels)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    path = tmp_path_factory.mktemp("clip") / "ViT-B-32.pt"
    archive = torch.jit.trace(Checkpoint().eval(), torch.zeros(1, 3, 224, 224))
    torch.jit.save(archive, path)
    return path


@pytest.fixture(scope="module")
def clip(checkpoint: Path) -> Clip:
    folder = checkpoint.parent
    for name in (IMAGE_FILE, TEXT_FILE):
        export_file(name, checkpoint, folder / name, shape=SMALL)
    vocabulary = folder / "bpe.txt.gz"
    vocabulary.write_bytes(gzip.compress(b"#version\nc u\ncu p</w>\n"))
    return Clip(folder / IMAGE_FILE, folder / TEXT_FILE, vocabulary, threads=1)


def test_images_become_unit_vectors_in_any_number(clip: Clip) -> None:
    images = [Image.new("RGB", (40, 40), (20 * i, 90, 0)) for i in range(11)]
    vectors = clip.embed_images(images)
    assert vectors.shape == (11, 32)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    alone = clip.embed_images(images[10:])
    assert np.allclose(vectors[10:], alone, atol=1e-5)


def test_the_vector_of_a_text_does_not_depend_on_longer_texts_beside_it(
    clip: Clip,
) -> None:
    together = clip.embed_texts(["a cup", "a photo of a very long thing."])
    alone = clip.embed_texts(["a cup"])
    assert np.allclose(together[:1], alone, atol=1e-4)
    assert np.allclose(np.linalg.norm(together, axis=1), 1 / 0.07, rtol=1e-4)


def test_the_networks_compute_what_transformers_computes(
    clip: Clip, checkpoint: Path
) -> None:
    transformers = pytest.importorskip("transformers")
    weights = read_checkpoint(checkpoint)
    sides = {"hidden_act": "quick_gelu", "projection_dim": 32, "num_hidden_layers": 2}
    vision = transformers.CLIPVisionModelWithProjection(
        transformers.CLIPVisionConfig(
            hidden_size=128, intermediate_size=512, num_attention_heads=2, **sides
        )
    ).eval()
    text = transformers.CLIPTextModelWithProjection(
        transformers.CLIPTextConfig(
            vocab_size=600,
            hidden_size=64,
            intermediate_size=256,
            num_attention_heads=1,
            eos_token_id=599,
            **sides,
        )
    ).eval()
    vision.load_state_dict(to_transformers(vision, weights, image=True))
    text.load_state_dict(to_transformers(text, weights, image=False))
    pixels = torch.randn(2, 3, 224, 224)
    tokens = torch.tensor([[1, 2, 3, 599], [4, 5, 599, 0]])
    with torch.no_grad():
        expected_image = vision(pixel_values=pixels).image_embeds
        expected_text = text(input_ids=tokens).text_embeds
    image_vectors = clip._image_session.run(None, {"pixels": pixels.numpy()})[0]
    text_vectors = clip._text_session.run(None, {"tokens": tokens.numpy()})[0]
    for vectors, expected in (
        (image_vectors, expected_image.numpy()),
        (text_vectors, expected_text.numpy()),
    ):
        units = expected / np.linalg.norm(expected, axis=1, keepdims=True)
        length = np.linalg.norm(vectors, axis=1, keepdims=True)
        assert np.allclose(vectors / length, units, atol=1e-4)


NAMES = (
    ("visual_projection.weight", "visual.proj"),
    ("text_projection.weight", "text_projection"),
    ("embeddings.class_embedding", "class_embedding"),
    ("embeddings.patch_embedding", "conv1"),
    ("embeddings.position_embedding.weight", "positional_embedding"),
    ("embeddings.token_embedding", "token_embedding"),
    ("pre_layrnorm", "ln_pre"),
    ("post_layernorm", "ln_post"),
    ("final_layer_norm", "ln_final"),
    ("encoder.layers", "transformer.resblocks"),
    ("self_attn", "attn"),
    ("layer_norm1", "ln_1"),
    ("layer_norm2", "ln_2"),
    ("fc1", "c_fc"),
    ("fc2", "c_proj"),
)
"""Parts of the names in transformers, and the authors' ones."""


def to_transformers(
    network: torch.nn.Module, weights: dict[str, torch.Tensor], *, image: bool
) -> dict[str, torch.Tensor]:
    """The authors' weights by the names of transformers."""
    renamed = {}
    for name, own in network.state_dict().items():
        official = name.removeprefix("vision_model.").removeprefix("text_model.")
        for theirs, ours in NAMES:
            official = official.replace(theirs, ours)
        if image and not official.startswith("visual."):
            official = f"visual.{official}"
        part = next((one for one in ("q_proj", "k_proj", "v_proj") if one in name), "")
        if part:
            kind = official.rpartition(".")[2]
            joined = official.replace(f"{part}.{kind}", f"in_proj_{kind}")
            place = ("q_proj", "k_proj", "v_proj").index(part)
            tensor = weights[joined].chunk(3)[place]
        elif own.dtype == torch.int64:
            tensor = own  # positions, which are no weights
        else:
            tensor = weights[official]
        renamed[name] = tensor.T if "projection" in name else tensor
    return renamed


def test_get_exports_the_checkpoint_and_the_model_uses_what_it_made(
    checkpoint: Path, clip: Clip, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MASKWISE_WEIGHTS", str(tmp_path))
    monkeypatch.setattr(
        "maskwise.models.photo.model.load_networks", lambda threads: fake_networks()
    )
    given = {"ViT-B-32.pt": checkpoint, "bpe_simple_vocab_16e6.txt.gz": clip.vocabulary}
    for name, path in given.items():
        shutil.copy(path, tmp_path / name)
        trust(tmp_path / name, file_facts(path).sha256)
    get_group("clip", export=partial(export_file, shape=SMALL))
    model = load.__wrapped__(labels="clip")
    (prediction,) = model.predict(draw_scene(), ["the mailbox"])
    assert prediction.no_target  # random vectors are all alike, and no label is likely
    assert model.config["labels"] == "clip"


def test_an_exported_file_needs_the_expected_checkpoint(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MASKWISE_WEIGHTS", str(tmp_path))
    shutil.copy(checkpoint, tmp_path / "ViT-B-32.pt")
    with pytest.raises(DownloadError, match=r"ViT-B-32\.pt is not the expected file"):
        get_weights(find_download("clip_image.onnx"), export=export_file)
    assert not (tmp_path / "clip_image.onnx").exists()


@pytest.mark.parametrize("content", [b"", b"no archive"])
def test_a_file_that_is_no_checkpoint_is_refused(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "ViT-B-32.pt"
    path.write_bytes(content)
    with pytest.raises(DownloadError, match="is no TorchScript archive of CLIP"):
        export_file(IMAGE_FILE, path, tmp_path / IMAGE_FILE)
    assert not (tmp_path / IMAGE_FILE).exists()


def test_a_checkpoint_of_other_sizes_is_refused(
    checkpoint: Path, tmp_path: Path
) -> None:
    other = ClipShape(
        image_width=64,
        image_layers=1,
        vocabulary_size=600,
        text_width=64,
        text_layers=1,
    )
    with pytest.raises(DownloadError, match="this is no checkpoint of CLIP"):
        export_file(TEXT_FILE, checkpoint, tmp_path / TEXT_FILE, shape=other)
