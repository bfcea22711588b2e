"""The connector's parts that need no engine: settings, digests of weights, layouts."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import nodes
from pando_kv.vllm import lora, settings, space, weights


def config(**changes: Any) -> Any:
    """The part of vLLM's configuration that is looked at, in its usual state."""
    transfer = SimpleNamespace(kv_load_failure_policy="recompute", kv_role="kv_both")
    parallel = SimpleNamespace(
        pipeline_parallel_size=1, decode_context_parallel_size=1, prefill_context_parallel_size=1
    )
    made = SimpleNamespace(
        kv_transfer_config=transfer,
        speculative_config=None,
        parallel_config=parallel,
        model_config=SimpleNamespace(runner_type="generate", use_mla=False, multimodal_config=None),
        cache_config=SimpleNamespace(enable_prefix_caching=False),
        load_config=SimpleNamespace(load_format="auto"),
    )
    for path, value in changes.items():
        owner, name = path.split("__")
        setattr(made if owner == "own" else getattr(made, owner), name, value)
    return made


def groups(*specs: object) -> Any:
    return SimpleNamespace(kv_cache_groups=[SimpleNamespace(kv_cache_spec=s) for s in specs])


def full_attention() -> object:
    from vllm.v1.kv_cache_interface import FullAttentionSpec

    return FullAttentionSpec(block_size=32, num_kv_heads=1, head_size=64, dtype=torch.float32)


READ = settings.read_settings({"pando.socket": "unix:/run/x.sock"})


def test_shares_in_the_usual_state() -> None:
    assert settings.why_not(config(), groups(full_attention()), READ) == ""


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"kv_transfer_config__kv_load_failure_policy": "fail"}, '"recompute"'),
        ({"kv_transfer_config__kv_role": "kv_producer"}, '"kv_both"'),
        ({"own__speculative_config": object()}, "speculative"),
        ({"parallel_config__pipeline_parallel_size": 2}, "pipeline"),
        ({"parallel_config__decode_context_parallel_size": 2}, "context"),
        ({"model_config__runner_type": "pooling"}, "pooling"),
        ({"model_config__use_mla": True}, "reuses no prefixes"),
        (
            {"model_config__multimodal_config": SimpleNamespace(mm_processor_cache_gb=0)},
            "--mm-processor-cache-gb",
        ),
        ({"load_config__load_format": "dummy"}, "pando.identity"),
    ],
)
def test_stands_aside_and_says_what_to_do(change: dict[str, Any], said: str) -> None:
    assert said in settings.why_not(config(**change), groups(full_attention()), READ)


def test_stands_aside_for_what_one_group_cannot_restore() -> None:
    from vllm.v1.kv_cache_interface import SlidingWindowSpec

    window = SlidingWindowSpec(
        block_size=32, num_kv_heads=1, head_size=64, dtype=torch.float32, sliding_window=64
    )
    assert "2 groups" in settings.why_not(config(), groups(full_attention(), window), READ)
    assert "SlidingWindowSpec" in settings.why_not(config(), groups(window), READ)


def test_dummies_with_a_name_share() -> None:
    named = settings.read_settings({"pando.socket": "unix:/x", "pando.identity": "me"})
    dummy = config(load_config__load_format="dummy")
    assert settings.why_not(dummy, groups(full_attention()), named) == ""


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("pando.wait_ms", "1s"),
        ("pando.wait_ms", -1),
        ("pando.call_ms", True),
        ("pando.weights", "half"),
        ("pando.store_decoded", "no"),
        ("pando.sokcet", "unix:/x"),
    ],
)
def test_refuses_settings_by_name(key: str, value: object) -> None:
    with pytest.raises(ValueError, match=key):
        settings.read_settings({key: value})


# FAULTS A5
def test_weights_that_differ_in_one_tensor_differ(make_model: Callable[..., Path]) -> None:
    small = ("--layers", "2", "--hidden", "128")
    model = make_model(*small)
    changed = make_model(*small, "--change", "model.layers.1.mlp.up_proj.weight")
    renamed = make_model(*small, "--seed", "0")
    assert weights.digest(str(model), None, full=False) != weights.digest(str(changed), None, False)
    assert weights.digest(str(model), None, full=True) != weights.digest(str(changed), None, True)
    assert weights.digest(str(model), None, full=False) == weights.digest(str(renamed), None, False)
    assert weights.digest(str(model), None, full=False) != weights.digest(str(model), None, True)


def test_weights_in_no_file_have_no_digest(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        weights.digest(str(tmp_path), None, full=False)
    (tmp_path / "a.safetensors").write_bytes(b"\xff" * 100)
    with pytest.raises(ValueError, match="header"):
        weights.digest(str(tmp_path), None, full=False)


def test_any_byte_counts_in_full_and_files_may_be_cut(
    make_model: Callable[..., Path], tmp_path: Path
) -> None:
    model = make_model("--layers", "2", "--hidden", "128")
    copy = tmp_path / "copy"
    shutil.copytree(model, copy)
    file = copy / "model.safetensors"
    content = bytearray(file.read_bytes())
    content[len(content) * 2 // 3] ^= 1
    file.write_bytes(content)
    assert weights.digest(str(copy), None, True) != weights.digest(str(model), None, True)
    file.write_bytes(content[: len(content) // 2])
    with pytest.raises(ValueError, match="ends before"):
        weights.digest(str(copy), None, True)


def adapter_files(folder: Path, weight: bytes = b"w") -> Path:
    folder.mkdir()
    (folder / "adapter_config.json").write_text("{}")
    (folder / "adapter_model.bin").write_bytes(weight)
    return folder


def adapter(path: Path, number: int = 1, in_place: bool = False) -> Any:
    return SimpleNamespace(
        lora_path=str(path), lora_int_id=number, load_inplace=in_place, is_3d_lora_weight=False
    )


# FAULTS A1
def test_equal_adapters_have_equal_digests_in_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lora, "_SETTLED", -3_600_000_000_000)
    paths = [adapter_files(tmp_path / name, name[:1].encode()) for name in ("a1", "a2", "b")]
    a1, a2, b = (lora.Adapters(False).digest(adapter(p)) for p in paths)
    assert a1 == a2 != b
    assert lora.Adapters(True).digest(adapter(paths[0])) == a1  # too small for windows


# FAULTS A1
def test_adapters_that_may_have_changed_have_no_digest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = adapter_files(tmp_path / "a")
    assert lora.Adapters(False).digest(adapter(path)) == "", "it is younger than the engine"
    monkeypatch.setattr(lora, "_SETTLED", -3_600_000_000_000)
    adapters = lora.Adapters(False)
    digest = adapters.digest(adapter(path))
    assert digest and adapters.digest(adapter(path)) == digest
    assert adapters.digest(adapter(path, in_place=True)) == ""
    other = adapter_files(tmp_path / "b")
    assert adapters.digest(adapter(other)) == "", "another under the same id"
    assert adapters.digest(adapter(other, number=2))
    (path / "adapter_model.bin").write_bytes(b"v")
    assert adapters.digest(adapter(path)) == "", "changed under the engine"
    assert adapters.digest(adapter(tmp_path / "none", number=3)) == ""


# FAULTS A1
@pytest.mark.parametrize("what", ["folder", "link", "above"])
def test_adapters_that_were_put_in_place_of_others_have_no_digest(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lora, "_SETTLED", 20_000_000)  # a tick of the files' clock
    live, following = tmp_path / "live", tmp_path / "next"
    for folder in (live, following):
        folder.mkdir()
        adapter_files(folder / "a", folder.name.encode())
    link = tmp_path / "link"
    link.symlink_to(live)
    path = (link if what == "link" else live) / "a"
    made = max(each.lstat().st_ctime_ns for each in tmp_path.rglob("*"))
    nodes.wait_for(lambda: time.time_ns() > made + 50_000_000, "files older than the engine")
    adapters = lora.Adapters(False)
    untouched = lora.Adapters(False)
    assert untouched.digest(adapter(path))
    (tmp_path / "something").mkdir()  # beside them: nothing to them
    assert adapters.digest(adapter(following / "a", number=2))
    if what == "folder":
        (live / "a").rename(live / "old")
        (following / "a").rename(live / "a")
    elif what == "link":
        link.unlink()
        link.symlink_to(following)
    else:
        live.rename(tmp_path / "old")
        following.rename(live)
    assert adapters.digest(adapter(path)) == ""
    assert untouched.digest(adapter(path)) == "", "it knew the one before"


# FAULTS A5
def test_weights_that_another_loader_takes_count(tmp_path: Path) -> None:
    (tmp_path / "training_args.bin").write_bytes(b"args")
    (tmp_path / "model.pt").write_bytes(b"one")
    first = weights.digest(str(tmp_path), None, full=False)
    (tmp_path / "model.pt").write_bytes(b"two")
    assert weights.digest(str(tmp_path), None, full=False) != first
    header = b'{"t":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}'
    (tmp_path / "a.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + b"x")
    plain = weights.digest(str(tmp_path), None, full=False)
    every = weights.digest(str(tmp_path), None, full=False, every=True)
    (tmp_path / "model.pt").write_bytes(b"three")
    assert weights.digest(str(tmp_path), None, full=False) == plain, "safetensors are preferred"
    assert weights.digest(str(tmp_path), None, full=False, every=True) != every


# FAULTS A4
def test_a_layout_that_names_other_memory_is_found() -> None:
    caches = {name: torch.zeros(5, 2, 32, 8) for name in "ab"}
    right = space.layout(caches, 5)
    space.check(right, caches, 5)
    assert not any(cache.any() for cache in caches.values())
    other = {**caches, "b": torch.zeros(5, 2, 32, 8)}
    with pytest.raises(space.UnknownLayout, match="do not lie"):
        space.check(right, other, 5)


def test_layouts_of_whole_blocks_and_no_others() -> None:
    blocks = 5
    one = torch.zeros(blocks, 2, 32, 8)
    assert space.layout({"a": one, "b": one}, blocks).page_bytes == 2 * 2 * 32 * 8 * 4
    two = torch.zeros(2, blocks, 32, 8)
    assert space.layout({"a": two}, blocks).pieces == 2
    for wrong in (torch.zeros(3, blocks, 8), torch.zeros(8, blocks).t(), one.to("meta")):
        with pytest.raises(space.UnknownLayout):
            space.layout({"a": wrong}, blocks)
