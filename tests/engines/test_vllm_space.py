"""Which replicas are of one space: told with vLLM's own configuration, to a real node."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
import vllm
from vllm.config import VllmConfig
from vllm.engine.arg_utils import EngineArgs
from vllm.v1.kv_cache_interface import FullAttentionSpec

import nodes
from pando_kv import Client, Role, now_ns
from pando_kv.vllm import settings, space

BLOCK = 128
SPEC = FullAttentionSpec(block_size=BLOCK, num_kv_heads=1, head_size=64, dtype=torch.float32)


@pytest.fixture(scope="module")
def engine(small_model: Path) -> VllmConfig:
    return EngineArgs(model=str(small_model), enforce_eager=True).create_engine_config()


@pytest.fixture
def spaces(engine: VllmConfig, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., int]]:
    """spaces(version, ...) -> how many spaces replicas of these versions of vLLM are."""
    read = settings.read_settings({"pando.socket": "unix:/none"})
    sessions: list[Client] = []
    with nodes.node() as node:

        def count(*versions: str) -> int:
            for version in versions:
                monkeypatch.setattr(vllm, "__version__", version)
                session = Client(
                    node.socket,
                    f"replica-{len(sessions)}",
                    role=Role.BOTH,
                    fields=space.model_fields(engine, SPEC, read),
                    block_tokens=BLOCK,
                    page_bytes=4096,
                )
                assert session.wait_attached(now_ns() + 2_000_000_000)
                sessions.append(session)
            return len(node.status()["spaces"])

        yield count
        for session in sessions:
            session.close()


# FAULTS A4
def test_two_versions_are_two_spaces(spaces: Callable[..., int]) -> None:
    assert spaces("0.32.0", "0.32.0") == 1
    assert spaces("0.32.1") == 2


def test_versions_that_are_listed_as_equal_are_one_space(
    spaces: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(space, "EQUAL_VERSIONS", (("0.1", "0.2"), ("0.32.0", "0.32.1")))
    assert spaces("0.32.0", "0.32.1") == 1
    assert spaces("0.32.2") == 2, "it is not listed"
    assert spaces("0.1") == 3, "it is listed beside others"
