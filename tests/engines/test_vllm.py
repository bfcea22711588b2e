"""Stock vLLM in bfloat16: what comes through Pando is equal to the bit to what is computed.

Reference: a replica without connector. A and C are replicas of node 1, B one of node 2. Prefill
chunks of 128 tokens, one request at a time: then cold and warm answers must be equal to the bit
wherever hits are multiples of the chunk, and others equal vLLM's own warm ones of equal length.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from replica import CHUNK, Answer, Replica, replicas
from workload import Account, Tree, at_rest, text, warm

import nodes


class Cluster(NamedTuple):
    nodes: list[nodes.Node]
    reference: Replica
    a: Replica
    b: Replica
    c: Replica

    @property
    def shared(self) -> list[Replica]:
        return [self.a, self.b, self.c]

    def cold(self, tokens: list[int]) -> Answer:
        self.reference.drain()
        return self.reference.ask(tokens)

    def local_warm(self, tokens: list[int], prefix: list[int]) -> Answer:
        """vLLM's own answer with that prefix in its cache."""
        self.reference.drain()
        self.reference.ask([*prefix, 0], count=1)
        return self.reference.ask(tokens)


@pytest.fixture(scope="module")
def cluster(small_model: Path, logs: Path) -> Iterator[Cluster]:
    with nodes.cluster(2) as pando:
        sockets = [None, pando[0].socket, pando[1].socket, pando[0].socket]
        made = [
            Replica(small_model, socket, logs / f"bf16-{name}.log")
            for name, socket in zip("rabc", sockets, strict=True)
        ]
        with replicas(*made) as (reference, a, b, c):
            yield Cluster(pando, reference, a, b, c)


@pytest.fixture(autouse=True)
def _at_rest_after(cluster: Cluster) -> Iterator[None]:
    """Each test ends with nothing claimed and with accounts that agree."""
    at_rest(cluster.nodes, cluster.shared)
    account = Account(cluster.shared, cluster.nodes)
    yield
    at_rest(cluster.nodes, cluster.shared)
    account.agrees()


def test_equal_to_the_bit_cold_warm_on_the_host_and_from_the_other_node(
    cluster: Cluster, request: pytest.FixtureRequest
) -> None:
    """Warm answers: documents x questions x replicas, 3 x 7 x 3 = 63; with --long 3 x 56 x 3."""
    rng = random.Random(1)
    questions = 56 if request.config.getoption("--long") else 7
    answers = different = 0
    for _ in range(3):
        document = text(rng, CHUNK * rng.randrange(4, 9))
        first = warm(cluster.a, document + text(rng, 30))
        assert first.cached == 0
        for _ in range(questions):
            question = document + text(rng, rng.randrange(1, 120))
            reference = cluster.cold(question)
            for replica in (cluster.c, cluster.b, cluster.a):
                got = warm(replica, question)
                assert got.cached == len(document)
                answers += 1
                different += not got.same(reference)
    assert different == 0, f"{different} of {answers} warm answers"
    assert answers == 9 * questions


# FAULTS A9
@pytest.mark.parametrize("length", [1, 127, 128, 129, 255, 256, 257, 640, 1000])
def test_prompts_of_all_lengths_leave_one_token_to_compute(cluster: Cluster, length: int) -> None:
    tokens = text(random.Random(length), length)
    reference = cluster.cold(tokens)
    assert warm(cluster.a, tokens).same(reference)
    for replica in (cluster.c, cluster.b):
        got = warm(replica, tokens)
        assert got.cached == (length - 1) // 128 * 128
        assert got.same(reference)


def test_prefixes_of_a_stored_prompt(cluster: Cluster) -> None:
    rng = random.Random(3)
    tokens = text(rng, 1100)
    warm(cluster.a, tokens)
    for shared in (100, 128, 300, 512, 700, 1023, 1024):
        prompt = tokens[:shared] + text(rng, 40)
        got = warm(cluster.c, prompt)
        assert got.cached == shared // 128 * 128
        assert got.same(cluster.cold(prompt))


def test_the_next_turn_begins_with_blocks_that_filled_while_decoding(cluster: Cluster) -> None:
    tokens = text(random.Random(4), 250)
    turn = cluster.a.ask(tokens, count=150)  # 400 tokens; the last one's KV is never computed
    cluster.a.drain()
    follow = tokens + turn.tokens + text(random.Random(5), 30)
    got = warm(cluster.c, follow)
    assert got.cached == 384
    # Decoded one by one, so compared with what vLLM itself has of the same.
    cluster.reference.drain()
    assert cluster.reference.ask(tokens, count=150).same(turn)
    assert got.same(cluster.reference.ask(follow))


# FAULTS A2
def test_salts_share_with_nobody_else(cluster: Cluster) -> None:
    tokens = text(random.Random(6), 600)
    reference = cluster.cold(tokens)
    for salt in ("one", "two", "", "x" * 1000, "x" * 1001):
        before = cluster.a.ask(tokens, salt=salt)
        cluster.a.drain()
        assert before.cached == 0, f"salt {salt[:9]!r} hits another's"
        again = cluster.a.ask(tokens, salt=salt)
        cluster.a.drain()
        assert again.cached == 512
        assert again.same(reference)


def test_local_and_external_hits_together(cluster: Cluster) -> None:
    """The engine's own cache has the first part, Pando the rest."""
    rng = random.Random(7)
    tokens = text(rng, 1024)
    warm(cluster.a, tokens + text(rng, 5))
    cluster.c.drain()
    cluster.c.ask(tokens[:300])
    prompt = tokens + text(rng, 20)
    account = Account([cluster.c], cluster.nodes)
    got = cluster.c.ask(prompt)
    assert got.cached == 1024 and got.same(cluster.cold(prompt))
    cluster.c.drain()
    assert account.since()["hit_engine"] == 256
    assert account.since()["hit_host"] == 768


def test_a_tree_of_shared_parts(cluster: Cluster, request: pytest.FixtureRequest) -> None:
    rng = random.Random(8)
    tree = Tree(9, part=150)
    hits = 0
    for _ in range(200 if request.config.getoption("--long") else 12):
        prompt = tree.prompt(tail=rng.randrange(1, 60))
        got = warm(rng.choice(cluster.shared), prompt)
        assert got.same(cluster.cold(prompt))
        hits += got.cached
    assert hits > 0


# FAULTS B2, B3
@pytest.mark.parametrize("what", ["loading", "stores"])
def test_aborted_in_the_middle(cluster: Cluster, what: str) -> None:
    tokens = text(random.Random(what), 2048)
    if what == "loading":
        warm(cluster.a, tokens)
    cluster.c.drain()
    ids = cluster.c.call("begin", prompts=[[*tokens, 1, 2, 3]], salt="", count=8)
    assert cluster.c.call("step_until", what=what)
    cluster.c.call("abort", ids=ids)
    at_rest(cluster.nodes, cluster.shared)
    got = warm(cluster.c, [*tokens, 5])
    assert got.same(cluster.cold([*tokens, 5]))
