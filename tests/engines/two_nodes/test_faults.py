"""Stock vLLM with nodes that come and go, and with pages that are corrupted on purpose.

No node is there when the replicas start.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from workload import Account, Tree, at_rest, text, warm

import nodes
from two_nodes.setup import BLOCK, Setup

PAGE = 4 * 2 * BLOCK * 2 * 64 * 4  # layers, heads, tokens, keys and values, dimension, bytes


# FAULTS C4
def test_without_a_node_and_with_one_that_comes_later(setup: Setup) -> None:
    tokens = text(random.Random(1), 300)
    (expected,) = setup.alone([tokens])
    got = warm(setup.c, tokens)
    assert got.tokens == expected and got.cached == 0
    setup.up()
    assert warm(setup.c, tokens).tokens == expected
    got = warm(setup.a, tokens)
    assert got.tokens == expected and got.cached == 288
    at_rest(setup.nodes, setup.shared)


# FAULTS A5
def test_other_weights_of_the_same_name_are_another_space(setup: Setup) -> None:
    setup.up()
    tokens = text(random.Random(2), 300)
    warm(setup.c, tokens)
    first = warm(setup.w, tokens)
    assert first.cached == 0
    assert warm(setup.w, tokens).cached == 288
    assert warm(setup.a, tokens).cached == 288
    assert len(setup.node.status()["spaces"]) == 2


# FAULTS B3
def test_preempted_requests_answer_as_alone(setup: Setup) -> None:
    setup.up()
    rng = random.Random(3)
    shared = text(rng, 100)
    prompts = [shared + text(rng, 120) for _ in range(6)]
    expected = setup.alone(prompts, count=60)
    account = Account(setup.shared, setup.nodes)
    before = setup.a.counters().get("vllm:num_preemptions", 0)
    for _ in range(2):  # cold, then warm
        got = setup.a.ask_all(prompts, count=60)
        assert [each.tokens for each in got] == expected
        at_rest(setup.nodes, setup.shared)
    assert setup.a.counters()["vllm:num_preemptions"] > before
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


# FAULTS B4, F6
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
        at_rest(setup.nodes, setup.shared)
        again = warm(setup.c, tokens)  # A has stored what it computed
        assert again.tokens == expected and again.cached == 192
        pages = pages[: i + 1] + [p for p in stored_pages(setup.node) if p not in pages[: i + 1]]


# FAULTS B4, G4
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
    at_rest(setup.nodes, setup.shared)


# FAULTS D2
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
    at_rest(setup.nodes, setup.shared)
