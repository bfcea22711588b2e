"""LoRA adapters: requests share with those that have the same adapter, and with no others."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

from replica import Replica, replicas
from workload import at_rest, text

import nodes

SHAPE = ("--layers", "4", "--hidden", "256")


def test_adapters_share_with_their_own(
    small_model: Path, make_model: Callable[..., Path], logs: Path
) -> None:
    one = str(make_model(*SHAPE, "--adapter", "--seed", "1"))
    two = str(make_model(*SHAPE, "--adapter", "--seed", "2"))
    tokens = text(random.Random(1), 600)
    engine = {"enable_lora": True, "max_lora_rank": 8, "max_loras": 2}
    with nodes.node() as node:
        made = [
            Replica(small_model, socket, logs / f"lora-{name}.log", **engine)
            for name, socket in (("r", None), ("a", node.socket), ("c", node.socket))
        ]
        with replicas(*made) as (reference, a, c):
            answers = {}
            for adapter in ("", one, two):
                reference.drain()
                answers[adapter] = reference.ask(tokens, adapter=adapter)
                first = a.ask(tokens, adapter=adapter)
                assert first.cached == 0, "what another adapter has computed"
                assert first.same(answers[adapter])
                a.drain()
            assert len({tuple(answer.tokens) for answer in answers.values()}) == 3
            for adapter in (two, "", one):  # other ids than A's, which do not matter
                got = c.ask(tokens, adapter=adapter)
                assert got.cached == 512
                assert got.same(answers[adapter])
                c.drain()
            (Path(one) / "adapter_config.json").touch()
            again = c.ask(tokens, adapter=one)
            assert again.cached == 0 and again.same(answers[one])
            assert "files changed since the engine began" in c.log()
            at_rest([node], [a, c])
