"""Other shapes of replicas: several workers, other kinds of attention, LoRA adapters, images."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from make_model import IMAGE
from replica import Replica, replicas
from server import Server, through_pando
from workload import Account, at_rest, share, text

import nodes

SHAPE = ("--layers", "4", "--hidden", "256")


needs_four_cores = pytest.mark.skipif(
    (os.cpu_count() or 1) < 4,
    reason="it needs 4 cores: vLLM's workers spin, and a node beside them gets none (vllm.md)",
)


# FAULTS B5
@needs_four_cores
def test_tensor_parallel_replicas_share_their_shards(small_model: Path, logs: Path) -> None:
    with nodes.cluster(2) as pando:
        made = [
            Replica(small_model, node.socket, logs / f"tp2-{name}.log", tensor_parallel_size=2)
            for name, node in zip("ab", pando, strict=True)
        ]
        with replicas(*made) as (a, b):
            share(pando, a, b)
            spaces = [space for node in pando for space in node.status()["spaces"]]
            assert [space["shards"] for space in spaces] == [2, 2]


@needs_four_cores
def test_data_parallel_engines_of_one_server_share(small_model: Path, logs: Path) -> None:
    tokens = text(random.Random(1), 600)
    with nodes.node() as node:
        flags = ("--data-parallel-size", "2")
        transfer = through_pando(node.socket)
        server = Server("dp2", small_model, transfer, "0|1", logs / "dp2.log", flags=flags)
        try:
            server.ready()
            first = server.ask(tokens, rank=0)
            assert first.cached == 0
            nodes.wait_for(lambda: node.status()["pages"]["committed"] == 4, "stored")
            got = server.ask(tokens, rank=1)
            assert got.cached == 512 and got.same(first)
        finally:
            Server.end_all([server], 20)


@pytest.mark.long
@pytest.mark.skipif(shutil.which("g++") is None, reason="it needs g++: vLLM compiles the model")
def test_compiled_models_share(small_model: Path, logs: Path) -> None:
    with nodes.cluster(2) as pando:
        made = [
            Replica(small_model, node.socket, logs / f"compiled-{name}.log", enforce_eager=False)
            for name, node in zip("ab", pando, strict=True)
        ]
        with replicas(*made) as (a, b):
            share(pando, a, b)


def test_latent_attention_is_shared_where_vllm_reuses_prefixes_of_it(
    make_model: Callable[..., Path], logs: Path
) -> None:
    """MLA: one latent vector a token and layer.

    vLLM's kernels for AMX take no float32; those without AMX begin at token 0.
    """
    model = make_model("--attention", "mla")
    amx = torch.cpu._is_amx_tile_supported()
    with nodes.cluster(2) as pando:
        made = [
            Replica(
                model,
                node.socket,
                logs / f"mla-{name}.log",
                dtype="bfloat16" if amx else "float32",
            )
            for name, node in zip("ab", pando, strict=True)
        ]
        with replicas(*made) as (a, b):
            if amx:
                share(pando, a, b)
            else:
                stands_aside(a, pando[0], "reuses no prefixes here")


def stands_aside(replica: Replica, node: nodes.Node, why: str) -> None:
    tokens = text(random.Random(1), 600)
    first = replica.ask(tokens)
    replica.drain()
    again = replica.ask(tokens)
    assert again.cached == 0 and again.same(first)
    assert why in replica.log()
    assert node.status()["spaces"] == []


def test_sliding_windows_stand_aside(make_model: Callable[..., Path], logs: Path) -> None:
    model = make_model("--attention", "sliding")
    with nodes.node() as node:
        made = Replica(model, node.socket, logs / "sliding.log", dtype="float32")
        with replicas(made) as (replica,):
            stands_aside(replica, node, "only full attention is supported")


# FAULTS A1
def test_lora_adapters_share_with_their_own(
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
            for adapter in (two, "", one):  # their numbers differ from A's, and do not matter
                got = c.ask(tokens, adapter=adapter)
                assert got.cached == 512
                assert got.same(answers[adapter])
                c.drain()
            (Path(one) / "adapter_config.json").touch()
            again = c.ask(tokens, adapter=one)
            assert again.cached == 0 and again.same(answers[one])
            assert "files changed since the engine began" in c.log()
            at_rest([node], [a, c])


# FAULTS A6
def test_images_are_shared_where_they_are_the_same(
    make_model: Callable[..., Path], logs: Path
) -> None:
    rng = random.Random(1)
    # An image is 256 tokens. No chunk of prefill meets two of them, of which vLLM would cut it.
    tokens = [*text(rng, 60), IMAGE, *text(rng, 80), IMAGE, *text(rng, 40)]
    model = make_model("--images")
    with nodes.cluster(2) as pando:
        made = [
            Replica(model, socket, logs / f"images-{name}.log", dtype="float32")
            for name, socket in (("r", None), ("a", pando[0].socket), ("b", pando[1].socket))
        ]
        with replicas(*made) as (reference, a, b):
            account = Account([a, b], pando)
            first = a.ask(tokens, images=[1, 2])
            assert first.cached == 0
            seen = set()
            for images, hit in (([1, 2], 640), ([1, 3], 384), ([3, 2], 0), ([2, 1], 0)):
                reference.drain()
                want = reference.ask(tokens, images=images)
                got = b.ask(tokens, images=images)
                b.drain()
                assert got.cached == hit, images
                assert got.same(want)
                assert got.same(first) == (images == [1, 2])
                seen.add(tuple(got.logprobs))
            assert len(seen) == 4, "what the model sees matters to it"
            at_rest(pando, [a, b])
            hits = account.agrees()
            assert (hits["hit_peer"], hits["hit_host"]) == (640, 384)
