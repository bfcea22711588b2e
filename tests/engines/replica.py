"""One vLLM replica in a process of its own (engine.py), driven step by step from here."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CHUNK = 128  # prefill chunk: hits that are multiples of it are equal to the bit (README there)
CLIENTS_TOKENS = 16  # at most, of an answer to a client


@dataclass(frozen=True)
class Answer:
    """What a request came to. `cached`: prompt tokens that were not computed."""

    tokens: list[int]
    logprobs: list[float]
    cached: int
    first_token_s: float

    def same(self, other: Answer) -> bool:
        """Equal to the bit."""
        return self.tokens == other.tokens and self.logprobs == other.logprobs


class Replica:
    """A running replica. `socket` None: without connector, the reference."""

    def __init__(self, model: Path, socket: str | None, log: Path, **engine: Any) -> None:
        extra = engine.pop("extra", {})
        self.name = log.stem
        arguments = {
            "model": str(model),
            "enforce_eager": True,
            "block_size": 128,
            "max_num_batched_tokens": CHUNK,
            "kv_cache_memory_bytes": 1 << 28,
            "max_model_len": 8192,
            "max_num_seqs": 8,
            "dtype": "bfloat16",
            "disable_log_stats": False,
            **engine,
        }
        if socket is not None:
            transfer = {
                "kv_connector": "PandoConnector",
                "kv_connector_module_path": "pando_kv.vllm",
                "kv_role": "kv_both",
                "kv_load_failure_policy": "recompute",
                # Under two engines and a node on two cores, an answer may take its time.
                "kv_connector_extra_config": {
                    "pando.socket": socket,
                    "pando.call_ms": 5000,
                    "pando.wait_ms": 20000,
                    **extra.pop("config", {}),
                },
                **extra,
            }
            arguments["kv_transfer_config"] = transfer
        env = {
            **os.environ,
            "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
            "HF_HUB_OFFLINE": "1",
            "TRANSFORMERS_OFFLINE": "1",
            "VLLM_NO_USAGE_STATS": "1",
            "OMP_NUM_THREADS": "1",
        }
        workers = engine.get("tensor_parallel_size", 1)
        if workers > 1:  # a core each
            env["VLLM_CPU_OMP_THREADS_BIND"] = "|".join(map(str, range(workers)))
        self._log = log
        self._process = subprocess.Popen(
            [
                "setpriv",
                "--pdeathsig",
                "KILL",
                "--",
                sys.executable,
                str(Path(__file__).parent / "engine.py"),
                json.dumps(arguments),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=open(log, "ab"),  # noqa: SIM115
            env=env,
            text=True,
            start_new_session=True,
        )

    def _send(self, command: str, **arguments: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"command": command, **arguments}) + "\n")
        self._process.stdin.flush()

    def _receive(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise AssertionError(f"{self.name} ended:\n{self.log()[-6000:]}")
        answer = json.loads(line)
        if "error" in answer:
            raise AssertionError(f"{self.name}: {answer['error']}")
        return answer["result"]

    def call(self, command: str, **arguments: Any) -> Any:
        self._send(command, **arguments)
        return self._receive()

    def ready(self) -> Replica:
        """Waits until it serves, and is attached if it is to be."""
        self._receive()
        return self

    def log(self) -> str:
        return self._log.read_text()

    def ask(self, tokens: list[int], count: int = 8, **more: Any) -> Answer:
        """`more`: `salt`; `adapter`, the folder of a LoRA adapter; `images`, a number for each."""
        return self.ask_all([tokens], count=count, **more)[0]

    def ask_all(self, prompts: list[list[int]], count: int = 8, **more: Any) -> list[Answer]:
        """All at once."""
        answers = self.call("ask", prompts=prompts, count=count, **more)
        return [Answer(**each) for each in answers]

    def start_asking(self, prompts: list[list[int]], count: int = 8) -> None:
        """`ask_all` whose answers `answers` waits for."""
        self._send("ask", prompts=prompts, count=count)

    def answers(self) -> list[Answer]:
        return [Answer(**each) for each in self._receive()]

    def start_clients(
        self, prompts: list[list[int]], clients: int, seconds: float, seed: int
    ) -> None:
        """So many clients ask random ones of the prompts, each one after another; every fifth time
        one hangs up before its answer is there.
        """
        self._send("clients", prompts=prompts, clients=clients, seconds=seconds, seed=seed)

    def served(self) -> list[tuple[int, list[int]]]:
        """What came of `start_clients`: the number of the prompt, and its answer, whole."""
        return [(number, tokens) for number, tokens in self._receive()]

    def drain(self) -> None:
        """Steps until nothing is left to copy; then drops the replica's own cache."""
        self.call("drain")

    def counters(self) -> dict[str, float]:
        counters: dict[str, float] = self.call("counters")
        return counters

    def close(self) -> None:
        with contextlib.suppress(AssertionError, BrokenPipeError, OSError):
            self.call("close")
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            pass
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


@contextlib.contextmanager
def replicas(*made: Replica) -> Iterator[tuple[Replica, ...]]:
    """They start beside each other."""
    try:
        yield tuple(each.ready() for each in made)
    finally:
        for each in made:
            each.close()
