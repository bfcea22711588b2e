"""`deploy/demo --engine vllm`, ended in the middle: nothing stays behind."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import secrets
import select
import signal
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import nodes

MARK = "PANDO_DEMO_MARK"
SEGMENTS = Path("/dev/shm")


class Demo:
    """It, at a terminal of its own. What it starts inherits a mark in its environment."""

    def __init__(self, folder: Path) -> None:
        self._mark = secrets.token_hex(8)
        self._before = set(SEGMENTS.iterdir())
        self._seen = b""
        command = [
            str(nodes.TOP / "deploy" / "demo"),
            *("--engine", "vllm", "--no-install", "--json", str(folder / "json")),
        ]
        self.pid, self._terminal = pty.fork()
        if self.pid == 0:
            os.environ[MARK], os.environ["TMPDIR"] = self._mark, str(folder)
            signal.signal(
                signal.SIGINT, signal.SIG_DFL
            )  # ignored where tests run in the background
            os.execv(command[0], command)

    def prints(self, pattern: str, seconds: float) -> None:
        """Waits for it."""
        deadline = time.monotonic() + seconds
        while not re.search(pattern, self._seen.decode(errors="replace")):
            left = deadline - time.monotonic()
            ready = left > 0 and select.select([self._terminal], [], [], left)[0]
            assert ready, f"not within {seconds} s: {pattern}\n{self._seen.decode()}"
            self._seen += os.read(self._terminal, 1 << 16)

    def interrupt(self) -> None:
        """Ctrl-C: to the terminal's foreground processes."""
        with contextlib.suppress(OSError):  # it has ended already
            os.write(self._terminal, b"\x03")

    def terminate(self) -> None:
        os.kill(self.pid, signal.SIGTERM)

    def status(self, seconds: float) -> int:
        """Waits for its end."""
        deadline = time.monotonic() + seconds
        while True:
            if select.select([self._terminal], [], [], 0.05)[0]:
                with contextlib.suppress(OSError):  # the terminal's other end is closed
                    self._seen += os.read(self._terminal, 1 << 16)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                os.close(self._terminal)
                return os.waitstatus_to_exitcode(status)
            assert time.monotonic() < deadline, f"it has not ended:\n{self._seen.decode()}"

    def processes(self) -> dict[int, str]:
        """Their command lines."""
        found = {}
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if f"{MARK}={self._mark}".encode() in (process / "environ").read_bytes():
                    words = (process / "cmdline").read_bytes().replace(b"\0", b" ")
                    found[int(process.name)] = words.decode()
        return found

    def kill(self) -> None:
        """What a failed test leaves."""
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def segments(self) -> list[str]:
        """Shared memory that is new and that nobody maps."""
        new = {str(path) for path in set(SEGMENTS.iterdir()) - self._before}
        for maps in Path("/proc").glob("[0-9]*/maps"):
            with contextlib.suppress(OSError):
                text = maps.read_text()
                new = {path for path in new if path not in text}
        return sorted(new)


def installing(demo: Demo) -> None:
    demo.prints("vLLM for CPUs", 120)
    nodes.wait_for(lambda: any(" pip " in p for p in demo.processes().values()), "pip at work", 60)


def starting(demo: Demo) -> None:
    demo.prints("three vLLM servers", 300)
    nodes.wait_for(
        lambda: sum("api_server" in p for p in demo.processes().values()) >= 3,
        "servers that start",
        60,
    )


def answering(demo: Demo) -> None:
    demo.prints("document 1", 300)


@pytest.mark.parametrize(
    ("moment", "end", "expected"),
    [
        (installing, Demo.interrupt, 130),
        pytest.param(starting, Demo.interrupt, 130, marks=pytest.mark.long),
        (answering, Demo.terminate, 143),
    ],
)
def test_ended_in_the_middle_it_leaves_nothing(
    moment: Callable[[Demo], None], end: Callable[[Demo], None], expected: int
) -> None:
    with tempfile.TemporaryDirectory(prefix="pd-", dir="/tmp") as name:  # short: for sockets
        folder = Path(name)
        demo = Demo(folder)
        try:
            moment(demo)
            end(demo)
            end(demo)  # an impatient user
            assert demo.status(30) == expected
            assert demo.processes() == {}
            assert demo.segments() == []
            assert list(folder.iterdir()) == []
        finally:
            demo.kill()
