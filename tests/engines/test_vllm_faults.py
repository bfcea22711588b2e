"""Stock vLLM in float32, where answers may be compared whatever else runs: faults and pressure.

The node is not there when the replicas start; it comes, goes, is stopped and corrupted. A has a KV
cache of its own that is too small, so that requests are preempted. W has the same model with other
weights.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from replica import Answer, Replica, replicas
from workload import Account, Tree, at_rest, text

import nodes

BLOCK = 32
PAGE = 4 * 2 * BLOCK * 2 * 64 * 4  # layers, heads, tokens, keys and values, dimension, bytes


class Setup(NamedTuple):
    node: nodes.Node
    reference: Replica
    a: Replica
    c: Replica
    w: Replica

    @property
    def shared(self) -> list[Replica]:
        return [self.a, self.c, self.w]

    def alone(self, prompts: list[list[int]], count: int = 8) -> list[list[int]]:
        """The tokens that each prompt's answer has when nothing else runs and nothing is cached."""
        answers = []
        for tokens in prompts:
            self.reference.drain()
            answers.append(self.reference.ask(tokens, count=count).tokens)
        return answers

    def up(self, *flags: str) -> None:
        """A fresh node, found by all."""
        self.node.end()
        self.node.start(*flags)
        for each in self.shared:
            nodes.wait_for(
                lambda each=each: self.node.stopped() or each.call("attach", seconds=0.2),  # type: ignore[misc]
                f"{each.name} attached",
            )


@pytest.fixture(scope="module")
def setup(small_model: Path, make_model: Callable[..., Path], logs: Path) -> Iterator[Setup]:
    other = "model.layers.2.self_attn.k_proj.weight"
    changed = make_model("--layers", "4", "--hidden", "256", "--change", other)
    node = nodes.Node("faults", "512MiB")
    engine = {"dtype": "float32", "block_size": BLOCK, "max_model_len": 1024}
    fast = {"config": {"pando.call_ms": 500}}
    made = [
        Replica(small_model, None, logs / "fp32-r.log", **engine),
        Replica(
            small_model, node.socket, logs / "fp32-a.log", num_gpu_blocks_override=40, **engine
        ),
        Replica(small_model, node.socket, logs / "fp32-c.log", extra=fast, **engine),
        Replica(changed, node.socket, logs / "fp32-w.log", extra=fast, **engine),
    ]
    try:
        with replicas(*made) as (reference, a, c, w):
            yield Setup(node, reference, a, c, w)
    finally:
        node.close()


def warm(replica: Replica, tokens: list[int]) -> Answer:
    replica.drain()
    answer = replica.ask(tokens)
    replica.drain()
    return answer


def test_without_a_node_and_with_one_that_comes_later(setup: Setup) -> None:
    tokens = text(random.Random(1), 300)
    (expected,) = setup.alone([tokens])
    got = warm(setup.c, tokens)
    assert got.tokens == expected and got.cached == 0
    setup.up()
    assert warm(setup.c, tokens).tokens == expected
    got = warm(setup.a, tokens)
    assert got.tokens == expected and got.cached == 288
    at_rest([setup.node], setup.shared)


def test_other_weights_of_the_same_name_are_another_space(setup: Setup) -> None:
    setup.up()
    tokens = text(random.Random(2), 300)
    warm(setup.c, tokens)
    first = warm(setup.w, tokens)
    assert first.cached == 0
    assert warm(setup.w, tokens).cached == 288
    assert warm(setup.a, tokens).cached == 288
    assert len(setup.node.status()["spaces"]) == 2


def test_preempted_requests_answer_as_alone(setup: Setup) -> None:
    setup.up()
    rng = random.Random(3)
    shared = text(rng, 100)
    prompts = [shared + text(rng, 120) for _ in range(6)]
    expected = setup.alone(prompts, count=60)
    account = Account(setup.shared, [setup.node])
    before = setup.a.counters().get("vllm:num_preemptions", 0)
    for _ in range(2):  # cold, then warm
        got = setup.a.ask_all(prompts, count=60)
        assert [each.tokens for each in got] == expected
        at_rest([setup.node], setup.shared)
    assert setup.a.counters()["vllm:num_preemptions"] > before
    assert account.agrees()["hit_host"] > 0


def test_concurrent_requests_answer_as_alone(setup: Setup, request: pytest.FixtureRequest) -> None:
    setup.up()
    account = Account(setup.shared, [setup.node])
    rng = random.Random(4)
    tree = Tree(5, part=100)
    for _ in range(60 if request.config.getoption("--long") else 3):
        batches = [[tree.prompt(rng.randrange(1, 50)) for _ in range(8)] for _ in range(2)]
        expected = [setup.alone(batch) for batch in batches]
        for each, batch in zip((setup.a, setup.c), batches, strict=True):
            each.start_asking(batch)
        for each, tokens in zip((setup.a, setup.c), expected, strict=True):
            assert [answer.tokens for answer in each.answers()] == tokens
        at_rest([setup.node], setup.shared)
    assert account.agrees()["hit_host"] > 0


def stored_pages(node: nodes.Node) -> list[tuple[Path, int]]:
    """Where in the slab something was written, page by page."""
    found = []
    for file in node.slab():
        with open(file, "rb") as extent:
            for offset in range(0, 1 << 26, PAGE):
                extent.seek(offset)
                if any(extent.read(4096)):
                    found.append((file, offset))
    return found


def read_page(page: tuple[Path, int]) -> bytes:
    with open(page[0], "rb") as extent:
        extent.seek(page[1])
        return extent.read(PAGE)


def write_page(page: tuple[Path, int], content: bytes) -> None:
    with open(page[0], "r+b") as extent:
        extent.seek(page[1])
        extent.write(content)


def test_a_flipped_bit_in_any_page_is_found_and_computed_again(setup: Setup) -> None:
    setup.up()
    rng = random.Random(6)
    tokens = text(rng, 200)
    (expected,) = setup.alone([tokens])
    warm(setup.c, tokens)
    pages = stored_pages(setup.node)
    assert len(pages) == 6
    for i, page in enumerate(pages):
        content = bytearray(read_page(page))
        content[rng.randrange(PAGE)] ^= 1 << rng.randrange(8)
        write_page(page, bytes(content))
        got = warm(setup.a, tokens)
        assert got.tokens == expected
        assert setup.node.status()["counters"]["pages_bad"] == i + 1
        at_rest([setup.node], setup.shared)
        again = warm(setup.c, tokens)  # A has stored what it computed
        assert again.tokens == expected and again.cached == 192
        pages = pages[: i + 1] + [p for p in stored_pages(setup.node) if p not in pages[: i + 1]]


def test_swapped_pages_are_found(setup: Setup) -> None:
    setup.up()
    tokens = text(random.Random(7), 200)
    (expected,) = setup.alone([tokens])
    warm(setup.c, tokens)
    one, two, *_ = stored_pages(setup.node)
    contents = read_page(one), read_page(two)
    write_page(one, contents[1])
    write_page(two, contents[0])
    assert warm(setup.a, tokens).tokens == expected
    assert setup.node.status()["counters"]["pages_bad"] >= 1
    at_rest([setup.node], setup.shared)


STEPS = [
    "attach.accepted",
    "replica.complete",
    "extent.sent",
    "acquire.matched",
    "acquire.leased",
    "reserve.placed",
    "begin.held",
    "end.committed",
    "end.released",
    "claim.finished",
    "settle.counted",
    "answer.sent",
]
CI_STEPS = ["acquire.leased", "reserve.placed", "begin.held", "settle.counted"]


def test_killed_at_each_step_changes_no_answer(
    setup: Setup, request: pytest.FixtureRequest
) -> None:
    """The node stops itself at a step, is killed there, and comes back."""
    rng = random.Random(8)
    reached = []
    for name in STEPS if request.config.getoption("--long") else CI_STEPS:
        tokens = text(rng, 150)
        (expected,) = setup.alone([tokens])
        setup.up("--pause-at", name)
        for _ in range(2):  # it stores, then loads
            assert setup.c.ask(tokens).tokens == expected, name
            setup.c.drain()
        if setup.node.stopped():
            reached.append(name)
        setup.node.kill()
        assert warm(setup.c, tokens).tokens == expected, name
    assert set(CI_STEPS) <= set(reached)
    setup.up()
    at_rest([setup.node], setup.shared)


def test_restarts_under_traffic(setup: Setup, request: pytest.FixtureRequest) -> None:
    setup.up()
    rng = random.Random(9)
    tree = Tree(10, part=100)
    for _ in range(20 if request.config.getoption("--long") else 3):
        batch = [tree.prompt(rng.randrange(1, 50)) for _ in range(6)]
        expected = setup.alone(batch)
        setup.c.start_asking(batch)
        setup.node.kill()
        setup.node.start()
        assert [answer.tokens for answer in setup.c.answers()] == expected
    setup.up()
    at_rest([setup.node], setup.shared)
