"""What a replica measures of itself, for bench.py."""

from __future__ import annotations

import ctypes
import mmap
import os
import statistics
import time
from pathlib import Path
from typing import Any

# The engine's calls of its connector, all of them on its one thread.
SCHEDULER_CALLS = (
    "get_num_new_matched_tokens",
    "update_state_after_alloc",
    "get_external_cache_hit_sources",
    "build_connector_meta",
    "update_connector_output",
    "request_finished_all_groups",
)
WORKER_CALLS = (
    "handle_preemptions",
    "bind_connector_metadata",
    "start_load_kv",
    "wait_for_layer_load",
    "save_kv_layer",
    "wait_for_save",
    "get_transfer_results",
    "build_connector_worker_meta",
    "get_kv_connector_stats",
)


class Timing:
    """An engine that runs in this process, and what its connector takes on its one thread."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self._core = engine.engine_core.engine_core
        self._calls: list[tuple[str, float, float]] = []
        self._clock = (0.0, 0.0)  # what timing a call that does nothing says

    @property
    def _connector(self) -> Any:
        return self._core.scheduler.connector

    def _worker(self) -> Any:
        from vllm.distributed.kv_transfer import get_kv_transfer_group

        return get_kv_transfer_group().worker

    def time_calls(self) -> None:
        """From now on, what the connector's calls take on the engine's thread is noted."""
        from vllm.distributed.kv_transfer import get_kv_transfer_group

        def timed(name: str, call: Any) -> Any:
            def run(*arguments: Any, **named: Any) -> Any:
                wall, cpu = time.perf_counter(), time.thread_time()
                result = call(*arguments, **named)
                took = time.perf_counter() - wall, time.thread_time() - cpu
                self._calls.append((name, *took))
                return result

            return run

        nothing = timed("", lambda: None)
        for _ in range(1001):
            nothing()
        self._clock = (
            statistics.median(wall for _, wall, _ in self._calls),
            statistics.median(cpu for _, _, cpu in self._calls),
        )
        self._calls.clear()

        sides = (self._connector, SCHEDULER_CALLS), (get_kv_transfer_group(), WORKER_CALLS)
        for side, names in sides:
            for name in names:
                setattr(side, name, timed(name, getattr(side, name)))

    def calls(self) -> dict[str, Any]:
        """(name, seconds, seconds of the processor) each, and what this process used in all.

        What the clocks themselves take is off already.
        """
        calls, self._calls = self._calls, []
        calls = [
            (name, max(0.0, wall - self._clock[0]), max(0.0, cpu - self._clock[1]))
            for name, wall, cpu in calls
        ]
        thread = 0.0
        for task in Path("/proc/self/task").iterdir():
            if (task / "comm").read_text() == "pando-copy\n":
                thread += int((task / "schedstat").read_text().split()[0]) / 1e9
        return {"calls": calls, "process_s": time.process_time(), "copy_thread_s": thread}

    def memcpy_rate(self, total: int, rounds: int) -> list[float]:
        """GB/s of plain copies, in pieces as large as those of the KV, to and from shared memory
        that was touched before.
        """
        layout = self._worker()._layout
        piece = layout.page_bytes // layout.pieces
        fd = os.memfd_create("plain")
        os.truncate(fd, total)
        there, here = mmap.mmap(fd, total), mmap.mmap(-1, total)
        sides = [ctypes.addressof(ctypes.c_char.from_buffer(side)) for side in (there, here)]
        for side in sides:
            ctypes.memset(side, 1, total)
        rates = []
        for number in range(2 * rounds):
            to, source = sides if number % 2 == 0 else reversed(sides)
            begin = time.perf_counter()
            for offset in range(0, total - piece + 1, piece):
                ctypes.memmove(to + offset, source + offset, piece)
            rates.append(total // piece * piece / (time.perf_counter() - begin) / 1e9)
        return rates
