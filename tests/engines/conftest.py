"""Models that are made once a run, and where replicas' logs go."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="more answers, minutes, every step")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what is only for --long, unless it is named."""
    if config.getoption("--long") or any("::" in argument for argument in config.args):
        return
    left_out = [item for item in items if item.get_closest_marker("long")]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


@pytest.fixture(scope="session")
def make_model(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """make_model(*arguments of make_model.py) -> its folder."""
    made: dict[tuple[str, ...], Path] = {}

    def make(*arguments: str) -> Path:
        if arguments not in made:
            folder = tmp_path_factory.mktemp("model")
            command = [sys.executable, str(HERE / "make_model.py"), str(folder), *arguments]
            subprocess.run(command, check=True)
            made[arguments] = folder
        return made[arguments]

    return make


@pytest.fixture(scope="session")
def small_model(make_model: Callable[..., Path]) -> Path:
    """A model that two cores prefill in time: 4 layers, 5 M parameters."""
    return make_model("--layers", "4", "--hidden", "256")


@pytest.fixture(scope="session")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = os.environ.get("PANDO_TEST_LOGS")
    folder = Path(where) if where else tmp_path_factory.mktemp("logs")
    folder.mkdir(parents=True, exist_ok=True)
    return folder
