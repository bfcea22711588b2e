"""What is told of a request besides its tokens: images, adapters, embeddings. On vLLM's own
requests, beside the keys that vLLM itself gives its blocks.
"""

from __future__ import annotations

import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from vllm import SamplingParams
from vllm.config.multimodal import MultiModalConfig
from vllm.lora.request import LoRARequest
from vllm.multimodal.inputs import MultiModalFeatureSpec, PlaceholderRange
from vllm.v1.core.kv_cache_utils import generate_block_hash_extra_keys
from vllm.v1.request import Request

from pando_kv.vllm import lora, prompt, space

BLOCK = 32
ADAPTERS = lora.Adapters(False)


def image(identifier: str, offset: int, length: int, modality: str = "image") -> Any:
    place = PlaceholderRange(offset, length)
    return MultiModalFeatureSpec(None, modality, identifier, place)


def request(*features: Any, tokens: int = 4 * BLOCK, **more: Any) -> Request:
    more = {"prompt_token_ids": [7] * tokens, "mm_features": list(features), **more}
    return Request(request_id="r", sampling_params=SamplingParams(), pooling_params=None, **more)


def extras(*features: Any, **more: Any) -> dict[int, bytes]:
    described = prompt.describe(request(*features, **more), BLOCK, ADAPTERS)
    assert described is not None
    assert [block for block, _ in described.extras] == sorted({b for b, _ in described.extras})
    return dict(described.extras)


def test_images_belong_to_the_blocks_that_they_cover() -> None:
    assert extras() == {}
    assert list(extras(image("a", 0, 1))) == [0]
    assert list(extras(image("a", 31, 1))) == [0]
    assert list(extras(image("a", 31, 2))) == [0, 1]
    assert list(extras(image("a", 32, 32))) == [1]
    assert list(extras(image("a", 40, 70))) == [1, 2, 3]
    spans = extras(image("a", 40, 70))
    assert len(set(spans.values())) == 3, "each block has another part of it"
    assert list(extras(image("a", 3, 5), image("b", 100, 5))) == [0, 3]


# FAULTS A6
def test_equal_images_at_equal_places_and_no_others_are_equal() -> None:
    one = extras(image("a", 3, 20))
    assert one == extras(image("a", 3, 20))
    others = [
        extras(image("b", 3, 20)),
        extras(image("a", 4, 20)),
        extras(image("a", 3, 21)),
        extras(image("a", 3, 20, modality="video")),
        extras(image("a", 3, 10), image("a", 13, 10)),
        extras(image("a", 3, 10), image("b", 13, 10)),
        extras(image("b", 3, 10), image("a", 13, 10)),
        extras(image('a", 3, 10], ["image", "b', 3, 20)),  # a name that its sender chose
    ]
    keys = [one[0], *(other[0] for other in others)]
    assert len(set(keys)) == len(keys)


def test_blocks_differ_where_those_of_vllm_do() -> None:
    """Against vLLM's own keys, for images at random places."""
    rng = random.Random(1)
    ours: dict[bytes | None, Any] = {}
    theirs: dict[Any, bytes | None] = {}
    for _ in range(300):
        features, at = [], 0
        while (at := at + rng.randrange(30)) < 100:
            length = (5, 28, 50)[kind := rng.randrange(3)]  # one for each: ours has the length too
            features.append(image(f"{kind}{rng.choice('ab')}", at, length))
            at += length
        made = request(*features, tokens=6 * BLOCK)
        mine, index = extras(*features, tokens=6 * BLOCK), 0
        for block in range(6):
            begin = block * BLOCK
            key, index = generate_block_hash_extra_keys(made, begin, begin + BLOCK, index)
            assert ours.setdefault(mine.get(block), key) == key
            assert theirs.setdefault(key, mine.get(block)) == mine.get(block)
    assert len(ours) > 100


def test_many_images_in_a_block_fit() -> None:
    many = [image(f"{number:064x}", number, 1) for number in range(BLOCK)]
    told = extras(*many)
    assert list(told) == [0] and len(told[0]) < 4096
    assert told != extras(*many[:-1], image("x", BLOCK - 1, 1))


def adapter(folder: Path, weight: bytes, number: int) -> LoRARequest:
    folder.mkdir()
    (folder / "adapter_config.json").write_text("{}")
    (folder / "adapter_model.bin").write_bytes(weight)
    return LoRARequest(folder.name, number, str(folder))


def test_adapters_and_images_are_told_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lora, "_SETTLED", -3_600_000_000_000)
    monkeypatch.setitem(globals(), "ADAPTERS", lora.Adapters(False))
    one = adapter(tmp_path / "one", b"1", 1)
    same = adapter(tmp_path / "same", b"1", 2)
    two = adapter(tmp_path / "two", b"2", 3)
    early, late = image("a", 3, 5), image("a", 40, 5)
    seen = [
        extras(*features, lora_request=lora_request)[0]
        for features in ([early], [image("b", 3, 5)], [late])
        for lora_request in (one, two)
    ]
    seen.append(extras(early)[0])
    assert len(set(seen)) == len(seen)
    assert extras(early, lora_request=one) == extras(early, lora_request=same)
    assert list(extras(late, lora_request=one)) == [0, 1]


def test_prompts_of_embeddings_are_not_shared_and_said_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prompt, "_said", set())
    monkeypatch.setattr(prompt.logger, "propagate", True)
    alone = request(prompt_token_ids=None, prompt_embeds=torch.zeros(64, 8))
    mixed = request(
        tokens=64, prompt_embeds=torch.zeros(64, 8), prompt_is_token_ids=[True] * 32 + [False] * 32
    )
    for made in (alone, mixed, alone):
        assert prompt.describe(made, BLOCK, ADAPTERS) is None
    assert [record.message for record in caplog.records] == [
        "Pando: prompts of embeddings are not shared in this version"
    ]
    assert prompt.describe(request(), BLOCK, ADAPTERS) is not None


# FAULTS A4, A6
def test_models_that_make_something_else_of_images_are_of_other_spaces(tmp_path: Path) -> None:
    (tmp_path / "preprocessor_config.json").write_text('{"image_mean": [0, 0, 0]}')

    def field(**settings: Any) -> str:
        images = MultiModalConfig(**settings)
        model: Any = SimpleNamespace(multimodal_config=images, model=str(tmp_path), revision=None)
        return space._images(model)

    first = field()
    assert first == field()
    assert first != field(mm_processor_kwargs={"do_resize": False})
    (tmp_path / "model.safetensors").write_bytes(b"of which the weights' digest speaks")
    assert first == field()
    (tmp_path / "preprocessor_config.json").write_text('{"image_mean": [1, 0, 0]}')
    assert first != field()
