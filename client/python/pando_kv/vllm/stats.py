"""What vLLM's log line and its /metrics say of the copies."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from vllm.distributed.kv_transfer.kv_connector.v1.metrics import (
    KVConnectorPromMetrics,
    KVConnectorStats,
)
from vllm.v1.metrics.utils import create_metric_per_engine

if TYPE_CHECKING:
    from vllm.config import VllmConfig

METRICS = {
    "loads": "Claims that were loaded from Pando, failed ones included",
    "loads_failed": "Claims that could not be loaded: their tokens were computed",
    "load_bytes": "Bytes loaded",
    "load_ns": "",
    "stores": "Claims that were stored to Pando, failed ones included",
    "stores_failed": "Claims that were not stored",
    "store_bytes": "Bytes stored",
    "store_ns": "",
    "copy_cpu_ns": "Seconds of a processor that the copies took",
}


@dataclass
class Numbers:
    """Counts of claims and bytes that were copied, and nanoseconds that the copies took."""

    loads: int = 0
    loads_failed: int = 0
    load_bytes: int = 0
    load_ns: int = 0
    stores: int = 0
    stores_failed: int = 0
    store_bytes: int = 0
    store_ns: int = 0
    copy_cpu_ns: int = 0

    def copies(self) -> int:
        return self.loads + self.stores

    def since(self, before: Numbers) -> dict[str, int]:
        return {f.name: getattr(self, f.name) - getattr(before, f.name) for f in fields(self)}


class PandoStats(KVConnectorStats):
    """`data`: the fields of Numbers, since the last step that had some."""

    def reset(self) -> None:
        self.data: dict[str, Any] = {}

    def aggregate(self, other: KVConnectorStats) -> PandoStats:
        names = self.data.keys() | other.data.keys()
        return PandoStats({n: self.data.get(n, 0) + other.data.get(n, 0) for n in names})

    def reduce(self) -> dict[str, int | float]:
        shown: dict[str, int | float] = {}
        for kind in ("load", "store"):
            size, took = self.data.get(f"{kind}_bytes", 0), self.data.get(f"{kind}_ns", 0)
            shown[f"Pando {kind}s"] = self.data.get(f"{kind}s", 0)
            shown[f"{kind}s failed"] = self.data.get(f"{kind}s_failed", 0)
            shown[f"{kind} MiB"] = round(size / 2**20, 1)
            shown[f"{kind} GB/s"] = round(size / took, 2) if took else 0
        return shown

    def is_empty(self) -> bool:
        return not any(self.data.values())


class PandoPromMetrics(KVConnectorPromMetrics):
    """Counters `vllm:pando_*_total`; times in seconds."""

    def __init__(
        self,
        vllm_config: VllmConfig,
        metric_types: dict[type, type],
        labelnames: list[str],
        per_engine_labelvalues: dict[int, list[object]],
    ) -> None:
        super().__init__(vllm_config, metric_types, labelnames, per_engine_labelvalues)
        self._counters: dict[str, Any] = {}
        for name, text in METRICS.items():
            counter = self._counter_cls(
                name=f"vllm:pando_{name.replace('_ns', '_seconds')}",
                documentation=text or "Seconds that the copies took",
                labelnames=labelnames,
            )
            self._counters[name] = create_metric_per_engine(counter, per_engine_labelvalues)

    def observe(self, transfer_stats_data: dict[str, Any], engine_idx: int = 0) -> None:
        for name, count in transfer_stats_data.items():
            if name in self._counters:
                scale = 1e-9 if name.endswith("_ns") else 1
                self._counters[name][engine_idx].inc(count * scale)
