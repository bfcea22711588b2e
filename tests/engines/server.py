"""One vLLM API server, as in production but for the model and the backend, and its answers."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import httpx

import nodes

BLOCK = 128
OWN_SEGMENTS = ("/dev/shm/psm_", "/dev/shm/sem.mp-")  # as Python names them
START_SECONDS = 300


def through_pando(socket: str) -> dict[str, Any]:
    return {
        "kv_connector": "PandoConnector",
        "kv_connector_module_path": "pando_kv.vllm",
        "kv_role": "kv_both",
        "kv_load_failure_policy": "recompute",
        "kv_connector_extra_config": {"pando.socket": socket},
    }


class Server:
    """Listens on the loopback. Ends by `end_all`."""

    def __init__(
        self,
        name: str,
        model: Path,
        transfer: dict[str, Any] | None,
        cores: int | str,
        log: Path,
        python: str = sys.executable,
        flags: tuple[str, ...] = (),
    ) -> None:
        """`transfer`: as --kv-transfer-config has it; None: without connector. `cores`: as
        VLLM_CPU_OMP_THREADS_BIND has them.
        """
        self.name, self._log = name, log
        (self._port,) = nodes.free_ports(1)
        command = [
            *("setpriv", "--pdeathsig", "INT", "--"),  # ends with who started it
            *(python, "-m", "vllm.entrypoints.openai.api_server"),
            *("--model", str(model), "--served-model-name", "model"),
            *("--host", "127.0.0.1", "--port", str(self._port)),
            *("--dtype", "float32", "--enforce-eager", "--block-size", str(BLOCK)),
            *("--max-num-batched-tokens", str(BLOCK), "--max-model-len", "8192"),
            *("--max-num-seqs", "8", "--kv-cache-memory-bytes", str(1 << 29)),
            "--enable-prompt-tokens-details",
            *flags,
        ]
        if transfer is not None:
            command += ["--kv-transfer-config", json.dumps(transfer)]
        env = {
            **os.environ,
            "HF_HUB_OFFLINE": "1",
            "TRANSFORMERS_OFFLINE": "1",
            "VLLM_NO_USAGE_STATS": "1",
            "VLLM_SERVER_DEV_MODE": "1",  # to drop a server's own cache
            "VLLM_CPU_OMP_THREADS_BIND": str(cores),
            "TMPDIR": str(log.parent),  # what a server leaves there ends with that folder
        }
        with open(log, "wb") as out:
            self._process = subprocess.Popen(
                command, stdout=out, stderr=out, env=env, start_new_session=True
            )
        self._http = httpx.Client(base_url=f"http://127.0.0.1:{self._port}", timeout=300)

    def ready(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                break
            with contextlib.suppress(httpx.TransportError):
                if self._http.get("/health").status_code == 200:
                    return
            time.sleep(0.2)
        raise SystemExit(f"{self.name} does not serve:\n{self._log.read_text()[-4000:]}")

    def ask(self, prompt: list[int], rank: int | None = None) -> Answer:
        """`rank`: of a server with several engines, which one."""
        body = {
            "model": "model",
            "prompt": prompt,
            "temperature": 0,
            "max_tokens": 8,
            "logprobs": 1,
            "stream": True,
            "return_token_ids": True,
            "stream_options": {"include_usage": True},
        }
        answer = Answer()
        begin = time.perf_counter()
        headers = {} if rank is None else {"X-data-parallel-rank": str(rank)}
        with self._http.stream("POST", "/v1/completions", json=body, headers=headers) as response:
            if response.status_code != 200:
                raise SystemExit(f"{self.name}: {response.read().decode()[:500]}")
            for line in response.iter_lines():
                if line.startswith("data: {"):
                    answer.take(json.loads(line[6:]), time.perf_counter() - begin)
        return answer

    def forget(self) -> None:
        """Drops the server's own cache, once its blocks are free."""
        nodes.wait_for(
            lambda: self._http.post("/reset_prefix_cache").status_code == 200, "cache dropped"
        )

    def _interrupt(self) -> None:
        self._http.close()
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._process.pid, signal.SIGINT)

    def _close(self, deadline: float) -> None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=max(0, deadline - time.monotonic()))
        segments = self._segments()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for segment in segments:
            segment.unlink(missing_ok=True)

    def _segments(self) -> set[Path]:
        """The shared memory that processes of its group have mapped, and would have unlinked."""
        found = set()
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if os.getpgid(int(process.name)) == self._process.pid:
                    words = (process / "maps").read_text().split()
                    found |= {Path(word) for word in words if word.startswith(OWN_SEGMENTS)}
        return found

    @staticmethod
    def end_all(servers: Iterable[Server], seconds: float) -> None:
        """Asks them to end, waits so long, and ends what is left of their groups."""
        each = list(servers)
        for one in each:
            one._interrupt()
        deadline = time.monotonic() + seconds
        for one in each:
            one._close(deadline)


class Answer:
    """As its events come. `first_ms`: from the question to the first token."""

    def __init__(self) -> None:
        self.tokens: list[int] = []
        self.logprobs: list[float] = []
        self.first_ms = 0.0
        self.cached = 0

    def take(self, event: dict[str, Any], seconds: float) -> None:
        for choice in event["choices"]:
            if choice.get("token_ids"):
                self.first_ms = self.first_ms or seconds * 1000
                self.tokens += choice["token_ids"]
                self.logprobs += choice["logprobs"]["token_logprobs"]
        if event.get("usage"):
            details = event["usage"].get("prompt_tokens_details") or {}
            self.cached = details.get("cached_tokens") or 0

    def same(self, other: Answer) -> bool:
        return self.tokens == other.tokens and self.logprobs == other.logprobs
