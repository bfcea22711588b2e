"""A program that is one vLLM replica, engine and worker in one process.

It reads a command a line (JSON) and answers with a line. Commands wait for nothing but the engine's
own steps. replica.py is the driver's end.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from collections.abc import Sequence
from typing import Any

from engine_timing import Timing
from replica import CLIENTS_TOKENS


class _Engine(Timing):
    def __init__(self, arguments: dict[str, Any]) -> None:
        from vllm import LLM, SamplingParams

        self._params = SamplingParams
        self._llm = LLM(**arguments)
        super().__init__(self._llm.llm_engine)
        self._ids = 0
        self._adapters: dict[str, int] = {}
        self._here = arguments.get("tensor_parallel_size", 1) == 1  # else workers are processes

    def attach(self, seconds: float = 5) -> bool:
        """Waits for the connector's sessions; without a node there are none."""
        connector = self._connector
        deadline = time.monotonic() + seconds
        while getattr(connector, "scheduler", None) is not None:
            for _ in range(2):  # one may read no more than what came before a session's end
                connector.scheduler.poll()
            states = [connector.scheduler.attached()]
            if self._here:
                states.append(self._worker().attached())
            if all(states) or time.monotonic() > deadline:
                return all(states)
            time.sleep(0.02)
        return False

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

    def clients(
        self, prompts: list[list[int]], clients: int, seconds: float, seed: int
    ) -> list[tuple[int, list[int]]]:
        rng = random.Random(seed)
        end = time.monotonic() + seconds
        asked: dict[str, int] = {}
        patience: dict[str, int] = {}  # steps until that one hangs up
        done: list[tuple[int, list[int]]] = []
        while True:
            while len(asked) < clients and time.monotonic() < end:
                number = rng.randrange(len(prompts))
                (name,) = self.begin([prompts[number]], rng.randrange(1, CLIENTS_TOKENS + 1))
                asked[name] = number
                if rng.randrange(5) == 0:
                    patience[name] = rng.randrange(1, 40)
            if not asked:
                return done
            for output in self._engine.step():
                if output.finished:
                    number = asked.pop(output.request_id)
                    patience.pop(output.request_id, None)
                    done.append((number, list(output.outputs[0].token_ids)))
            patience = {name: steps - 1 for name, steps in patience.items()}
            for name in [name for name, steps in patience.items() if steps == 0]:
                self.abort([name])
                del asked[name], patience[name]
            if time.monotonic() > end + 120:
                raise RuntimeError(f"no end of the requests {sorted(asked)}")

    def decode(
        self, name: str, steps: int, others: list[list[int]], apart: int
    ) -> list[tuple[float, float]]:
        """Steps of the running request `name`, with another one that begins every `apart` steps.

        For each of its tokens: seconds since the one before, and of them those in the connector.
        """
        pauses, connector, begin = [], 0.0, time.perf_counter()
        for number in range(steps):
            if number % apart == 0 and others:
                self.begin([others.pop()], 1)
            first = len(self._calls)
            outputs = self._engine.step()
            connector += sum(seconds for _, seconds, _ in self._calls[first:])
            if any(output.request_id == name for output in outputs):
                now = time.perf_counter()
                pauses.append((now - begin, connector))
                connector, begin = 0.0, now
        return pauses

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
        if getattr(connector, "scheduler", None) is not None:
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
