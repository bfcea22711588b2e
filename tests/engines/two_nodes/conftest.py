from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from two_nodes.setup import Setup, two_nodes


@pytest.fixture(scope="package")
def setup(small_model: Path, make_model: Callable[..., Path], logs: Path) -> Iterator[Setup]:
    """Replicas on two nodes."""
    other = "model.layers.2.self_attn.k_proj.weight"
    changed = make_model("--layers", "4", "--hidden", "256", "--change", other)
    with two_nodes(small_model, changed, logs) as made:
        yield made
