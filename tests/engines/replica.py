"""One vLLM replica in a process of its own, engine and worker in it, driven step by step.

As a program it is the replica: it reads a command a line (JSON) and answers with a line. `Replica`
is the driver's end. Commands wait for nothing but the engine's own steps.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CHUNK = 128  # prefill chunk: hits that are multiples of it are equal to the bit (README there)


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
                __file__,
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


# ---- The replica itself


class _Engine:
    def __init__(self, arguments: dict[str, Any]) -> None:
        from vllm import LLM, SamplingParams

        self._params = SamplingParams
        self._llm = LLM(**arguments)
        self._engine = self._llm.llm_engine
        self._core = self._engine.engine_core.engine_core
        self._ids = 0
        self._adapters: dict[str, int] = {}
        self._here = arguments.get("tensor_parallel_size", 1) == 1  # else workers are processes

    @property
    def _connector(self) -> Any:
        return self._core.scheduler.connector

    def attach(self, seconds: float = 5) -> bool:
        """Waits for the connector's sessions; without a node there are none."""
        connector = self._connector
        deadline = time.monotonic() + seconds
        while connector is not None and connector.scheduler is not None:
            connector.scheduler.poll()
            states = [connector.scheduler.attached()]
            if self._here:
                states.append(self._worker().attached())
            if all(states) or time.monotonic() > deadline:
                return all(states)
            time.sleep(0.02)
        return False

    def _worker(self) -> Any:
        from vllm.distributed.kv_transfer import get_kv_transfer_group

        return get_kv_transfer_group().worker

    def begin(
        self,
        prompts: list[list[int]],
        count: int,
        salt: str = "",
        adapter: str = "",
        images: Sequence[int] = (),
    ) -> list[str]:
        from vllm.lora.request import LoRARequest

        lora = None
        if adapter:
            number = self._adapters.setdefault(adapter, len(self._adapters) + 1)
            lora = LoRARequest(f"adapter-{number}", number, adapter)
        ids = []
        for tokens in prompts:
            self._ids += 1
            prompt: dict[str, Any] = {"prompt_token_ids": tokens}
            if salt:
                prompt["cache_salt"] = salt
            if images:
                prompt["multi_modal_data"] = {"image": [_image(number) for number in images]}
            params = self._params(temperature=0, max_tokens=count, logprobs=1, ignore_eos=True)
            self._engine.add_request(str(self._ids), prompt, params, lora_request=lora)
            ids.append(str(self._ids))
        return ids

    def finish(self, ids: list[str]) -> list[dict[str, Any]]:
        begin = time.perf_counter()
        done: dict[str, dict[str, Any]] = {}
        first: dict[str, float] = {}
        while self._engine.has_unfinished_requests():
            for output in self._engine.step():
                completion = output.outputs[0]
                if completion.token_ids:
                    first.setdefault(output.request_id, time.perf_counter() - begin)
                if output.finished:
                    done[output.request_id] = {
                        "tokens": list(completion.token_ids),
                        "logprobs": [
                            each[token].logprob
                            for token, each in zip(
                                completion.token_ids, completion.logprobs or [], strict=True
                            )
                        ],
                        "cached": output.num_cached_tokens or 0,
                        "first_token_s": first[output.request_id],
                    }
        return [done[each] for each in ids if each in done]

    def ask(self, **arguments: Any) -> list[dict[str, Any]]:
        return self.finish(self.begin(**arguments))

    def step(self, count: int) -> int:
        """Steps of the engine; the number of requests that are unfinished after them."""
        for _ in range(count):
            self._engine.step()
        return int(self._core.scheduler.get_num_unfinished_requests())

    def step_until(self, what: str) -> bool:
        """Steps until a request has `what` (loading, stores); False if all are done before."""
        while self._engine.has_unfinished_requests():
            tracks = self._connector.scheduler.tracks()
            if any(getattr(t, what) for t in tracks):
                return True
            self._engine.step()
        return False

    def abort(self, ids: list[str]) -> None:
        self._engine.abort_request(ids)

    def drain(self) -> None:
        deadline = time.monotonic() + 60
        while self._core.scheduler.has_requests():
            self._core.step_fn()
            time.sleep(0.001)
            if time.monotonic() > deadline:
                raise RuntimeError("the engine still has requests")
        connector = self._connector
        if connector is not None and connector.scheduler is not None:
            connector.scheduler.poll()
            left = connector.scheduler.tracks()
            if left:
                raise RuntimeError(f"the connector still looks after {left}")
        if not self._llm.reset_prefix_cache():
            raise RuntimeError("the engine's cache could not be reset: some blocks are not free")

    def counters(self) -> dict[str, float]:
        values: dict[str, float] = {}
        for metric in self._llm.get_metrics():
            if hasattr(metric, "value"):
                values[metric.name] = values.get(metric.name, 0) + metric.value
                if source := metric.labels.get("source"):
                    values[f"{metric.name}/{source}"] = metric.value
        return values

    def time_calls(self) -> None:
        """From now on, what the connector's calls take on the scheduling thread is noted."""
        scheduler = self._connector.scheduler
        self._calls: list[tuple[str, float, float]] = []

        def timed(name: str, call: Any) -> Any:
            def run(*arguments: Any) -> Any:
                wall, cpu = time.perf_counter(), time.thread_time()
                result = call(*arguments)
                took = time.perf_counter() - wall, time.thread_time() - cpu
                self._calls.append((name, *took))
                return result

            return run

        for name in ("matched", "admitted", "step", "ended", "finished"):
            setattr(scheduler, name, timed(name, getattr(scheduler, name)))

    def calls(self) -> dict[str, Any]:
        """(name, seconds, seconds of the processor) each, and what this process used in all."""
        calls, self._calls = self._calls, []
        copies = 0.0
        for task in Path("/proc/self/task").iterdir():
            if (task / "comm").read_text() == "pando-copy\n":
                copies += int((task / "schedstat").read_text().split()[0]) / 1e9
        return {"calls": calls, "process_s": time.process_time(), "copy_thread_s": copies}

    def close(self) -> None:
        self._engine.engine_core.shutdown()

    def numbers(self) -> dict[str, int]:
        return dict(vars(self._worker().numbers()))


def _image(number: int) -> Any:
    """Equal for equal numbers."""
    from PIL import Image

    return Image.frombytes("RGB", (224, 224), random.Random(number).randbytes(224 * 224 * 3))


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what vLLM prints is no answer
    engine = _Engine(json.loads(sys.argv[1]))
    attached = engine.attach()
    print(json.dumps({"result": attached}), file=answers, flush=True)
    for line in sys.stdin:
        arguments = json.loads(line)
        command = arguments.pop("command")
        try:
            answer = {"result": getattr(engine, command)(**arguments)}
        except Exception as error:
            import traceback

            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)
        if command == "close":
            os._exit(0)  # torch takes seconds to end


if __name__ == "__main__":
    main()
