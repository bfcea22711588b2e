"""Real pando-nodes for tests: started, asked, stopped, killed. Their files are in a folder each."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

TOP = Path(__file__).resolve().parents[2]
BIN = Path(os.environ.get("PANDO_BIN", TOP / "build" / "release" / "bin"))


def wait_for(condition: Callable[[], bool], what: str, seconds: float = 20.0) -> None:
    """Looks at `condition` until it holds; fails, naming `what`, after `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() >= deadline:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.005)


def short_folder(prefix: str) -> Path:
    """A new one, for sockets too: their paths have at most 107 bytes."""
    made = tempfile.mkdtemp(prefix=prefix)
    if len(made) > 60:
        os.rmdir(made)
        made = tempfile.mkdtemp(prefix=prefix, dir="/tmp")
    return Path(made)


class Node:
    """One pando-node of this machine. Ends with `close`."""

    def __init__(self, name: str = "node", slab: str = "512MiB", *flags: str) -> None:
        self.name = name
        self.home = short_folder("pando-")
        self.socket = f"unix:{self.home}/node.sock"
        self._command = [
            *("setpriv", "--pdeathsig", "TERM", "--"),  # ends with who started it
            str(BIN / "pando-node"),
            *("--name", name),
            *("--socket", f"{self.home}/node.sock"),
            *("--host-slab", slab),
            *("--space-share", "1"),
            *flags,
        ]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, *more: str) -> Node:
        """Starts it, again too and with `more` flags, and waits until it is ready, or has stopped
        itself before (--pause-at).
        """
        out = self.home / "out"
        env = {**os.environ, "UCX_TLS": "tcp"}
        with open(out, "wb") as stdout, open(self.home / "log", "ab") as log:
            command = [*self._command, *more]
            self._process = subprocess.Popen(command, stdout=stdout, stderr=log, env=env)
        process = self._process
        wait_for(
            lambda: (
                process.poll() is not None
                or out.read_bytes().startswith((b"pando-node ready", b"paused"))
            ),
            f"node {self.name} ready",
        )
        if process.poll() is not None:
            raise AssertionError(f"node {self.name} ended: {(self.home / 'log').read_text()}")
        return self

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        """SIGKILL: what no drain precedes."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """SIGSTOP: alive, and silent."""
        os.kill(self.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def end(self) -> None:
        """SIGTERM, and waits; `start` starts it anew."""
        self._end(signal.SIGTERM)

    def close(self) -> None:
        self.end()
        shutil.rmtree(self.home, ignore_errors=True)

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, how)
            os.kill(process.pid, signal.SIGCONT)
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def stopped(self) -> bool:
        """By a signal, as --pause-at does it."""
        return Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "T"

    def processor_s(self) -> float:
        """What its threads have used of a processor."""
        tasks = Path(f"/proc/{self.pid}/task").iterdir()
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9

    def slab(self) -> list[Path]:
        """Its extents of 64 MiB, as files that can be read and written behind its back."""
        files = Path(f"/proc/{self.pid}/fd").iterdir()
        extents = [f for f in files if "memfd:" in os.readlink(f) and f.stat().st_size == 1 << 26]
        return list({f.stat().st_ino: f for f in extents}.values())  # a node of several has two fds

    def text(self, *command: str) -> str:
        """What `pandoctl COMMAND` prints."""
        args = [str(BIN / "pandoctl"), "--admin", f"unix:{self.home}/admin.sock", *command]
        done = subprocess.run(args, capture_output=True, text=True, timeout=30)
        if done.returncode != 0:
            raise AssertionError(f"pandoctl {command}: {done.stdout}{done.stderr}")
        return done.stdout

    def ask(self, *command: str) -> Any:
        return json.loads(self.text(*command, "--json"))

    def status(self) -> dict[str, Any]:
        status: dict[str, Any] = self.ask("status")
        return status

    def tokens(self) -> dict[str, int]:
        """The account of all settled requests; it balances."""
        tokens: dict[str, int] = self.ask("stats")["tokens"]
        hits = sum(count for name, count in tokens.items() if name.startswith("hit_"))
        assert tokens["prompt"] == hits + tokens["computed"], tokens
        return tokens

    def check(self) -> None:
        """The node recounts everything; fails if something is wrong."""
        self.text("check")


def free_ports(count: int) -> list[int]:
    """Ports of the loopback that nobody has now."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


@contextlib.contextmanager
def node(*flags: str, name: str = "node", slab: str = "512MiB") -> Iterator[Node]:
    one = Node(name, slab, *flags)
    try:
        yield one.start()
    finally:
        one.close()


def peers(count: int, slab: str = "512MiB") -> list[Node]:
    """Nodes that are told of each other, and do not run yet."""
    ports = free_ports(count)
    all_peers = ",".join(f"127.0.0.1:{port}" for port in ports)
    return [
        Node(f"node-{i + 1}", slab, "--peer-listen", f"127.0.0.1:{port}", "--peers", all_peers)
        for i, port in enumerate(ports)
    ]


@contextlib.contextmanager
def cluster(count: int, slab: str = "512MiB") -> Iterator[list[Node]]:
    """Nodes that know each other."""
    made = peers(count, slab)
    try:
        for each in made:
            each.start()
        for each in made:
            each.text("peers", "--wait", "20")
        yield made
    finally:
        for each in made:
            each.close()
