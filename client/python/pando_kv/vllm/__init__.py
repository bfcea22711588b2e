"""The connector that makes stock vLLM replicas share their prefixes through a pando-node.

    --kv-transfer-config '{"kv_connector": "PandoConnector",
        "kv_connector_module_path": "pando_kv.vllm", "kv_role": "kv_both",
        "kv_load_failure_policy": "recompute",
        "kv_connector_extra_config": {"pando.socket": "unix:/run/pando/node.sock"}}'

Where it cannot share (settings.py says when) it stands aside with one line, and the engine runs as
without it.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from vllm.distributed.kv_transfer.kv_connector.v1.base import (
    KVConnectorBase_V1,
    KVConnectorMetadata,
    KVConnectorRole,
    KVConnectorTransferResults,
    KVConnectorWorkerMetadata,
    SupportsHMA,
)
from vllm.distributed.kv_transfer.kv_connector.v1.metrics import KVConnectorStats
from vllm.v1.metrics.cache_hit_source import CacheHitSource

from pando_kv.vllm import settings as settings_module
from pando_kv.vllm import space
from pando_kv.vllm.meta import StepMeta
from pando_kv.vllm.scheduler import SchedulerSide
from pando_kv.vllm.stats import Numbers, PandoPromMetrics, PandoStats
from pando_kv.vllm.worker import WorkerSide

if TYPE_CHECKING:
    import torch
    from vllm.config import VllmConfig
    from vllm.forward_context import ForwardContext
    from vllm.v1.attention.backend import AttentionMetadata
    from vllm.v1.core.kv_cache_manager import KVCacheBlocks, KVCacheManager
    from vllm.v1.core.sched.output import SchedulerOutput
    from vllm.v1.kv_cache_interface import KVCacheConfig, KVCacheSpec
    from vllm.v1.outputs import KVConnectorOutput
    from vllm.v1.request import Request

__all__ = ["PandoConnector"]

logger = logging.getLogger("vllm.pando")


class PandoConnector(KVConnectorBase_V1, SupportsHMA):
    """vLLM's two sides of a connector: each process has one of them, `scheduler` or `worker`.

    The one that is None is another process's, or the connector stands aside.
    """

    def __init__(
        self, vllm_config: VllmConfig, role: KVConnectorRole, kv_cache_config: KVCacheConfig
    ) -> None:
        super().__init__(vllm_config, role, kv_cache_config)
        self.scheduler: SchedulerSide | None = None
        self.worker: WorkerSide | None = None
        self._numbers = Numbers()  # that vLLM was told of
        self._settings = settings_module.read_settings(
            self._kv_transfer_config.kv_connector_extra_config
        )
        why = settings_module.why_not(vllm_config, kv_cache_config, self._settings)
        self._aside = bool(why)
        self._last: set[str] = set()  # of a worker that stands aside alone
        if not why and role == KVConnectorRole.SCHEDULER:
            try:
                self.scheduler = self._make_scheduler()
            except (OSError, ValueError) as error:
                why = f"the model's weights have no digest: {error}"
        if why and role == KVConnectorRole.SCHEDULER:
            logger.warning("Pando stands aside, nothing is shared: %s", why)

    @property
    def requires_kv_delivery(self) -> bool:
        return False  # a cache: what is not stored is computed

    @property
    def _spec(self) -> KVCacheSpec:
        return self._kv_cache_config.kv_cache_groups[0].kv_cache_spec

    def _make_scheduler(self) -> SchedulerSide:
        return SchedulerSide(
            self._settings,
            self._kv_transfer_config.engine_id,
            space.model_fields(self._vllm_config, self._spec, self._settings),
            self._spec.block_size,
            self._vllm_config.parallel_config.tensor_parallel_size,
        )

    # ---- The worker's side

    def register_kv_caches(self, kv_caches: dict[str, torch.Tensor]) -> None:
        if self._aside or self.worker is not None:
            return
        try:
            layout = space.layout(kv_caches, self._kv_cache_config.num_blocks)
            space.check(layout, kv_caches, self._kv_cache_config.num_blocks)
            fields = space.layout_fields(self._vllm_config, self._spec, kv_caches)
        except (space.UnknownLayout, ValueError) as error:
            self._aside = True
            logger.warning("Pando stands aside, nothing is shared: %s", error)
            return
        parallel = self._vllm_config.parallel_config
        self.worker = WorkerSide(
            self._settings,
            self._kv_transfer_config.engine_id,
            fields,
            layout,
            parallel.rank % parallel.tensor_parallel_size,
            parallel.tensor_parallel_size,
        )

    def handle_preemptions(self, kv_connector_metadata: KVConnectorMetadata) -> None:
        meta = kv_connector_metadata
        if self.worker is not None and isinstance(meta, StepMeta) and meta.stop:
            self.worker.stop(meta.stop)

    def bind_connector_metadata(self, connector_metadata: KVConnectorMetadata) -> None:
        """Loads begin here, beside the step's forward: their blocks are nobody else's."""
        super().bind_connector_metadata(connector_metadata)
        if self.worker is not None and isinstance(connector_metadata, StepMeta):
            self.worker.load(connector_metadata.loads)

    def start_load_kv(self, forward_context: ForwardContext, **kwargs: Any) -> None:
        pass

    def wait_for_layer_load(self, layer_name: str) -> None:
        pass

    def save_kv_layer(
        self,
        layer_name: str,
        kv_layer: torch.Tensor,
        attn_metadata: AttentionMetadata,
        **kwargs: Any,
    ) -> None:
        pass

    def wait_for_save(self) -> None:
        """The step's forward is done: the blocks that it filled can be stored."""
        meta = self._connector_metadata
        if not isinstance(meta, StepMeta):
            return
        if self.worker is None:
            self._last |= meta.last
            return
        self.worker.store(meta.stores)
        self.worker.last(meta.last)

    def get_transfer_results(self, finished_req_ids: set[str]) -> KVConnectorTransferResults:
        if self.worker is None:
            last, self._last = self._last, set()
            return KVConnectorTransferResults(finished_sending=last)
        done = self.worker.take_done()
        return KVConnectorTransferResults(done.sent, done.received, done.failed)

    def build_connector_worker_meta(self) -> KVConnectorWorkerMetadata | None:
        return self.worker.take_meta() if self.worker is not None else None

    def get_kv_connector_stats(self) -> KVConnectorStats | None:
        if self.worker is None:
            return None
        if self.worker.copies == self._numbers.copies():
            return None  # as in most steps
        now = self.worker.numbers()
        stats = PandoStats(now.since(self._numbers))
        self._numbers = now
        return stats

    @classmethod
    def build_kv_connector_stats(cls, data: dict[str, Any] | None = None) -> KVConnectorStats:
        return PandoStats(data or {})

    @classmethod
    def build_prom_metrics(
        cls,
        vllm_config: VllmConfig,
        metric_types: dict[type, type],
        labelnames: list[str],
        per_engine_labelvalues: dict[int, list[object]],
    ) -> PandoPromMetrics:
        return PandoPromMetrics(vllm_config, metric_types, labelnames, per_engine_labelvalues)

    # ---- The scheduler's side

    def bind_kv_cache_manager(self, kv_cache_manager: KVCacheManager) -> None:
        super().bind_kv_cache_manager(kv_cache_manager)
        if self.scheduler is not None:
            self.scheduler.resolve_block_ids(kv_cache_manager.get_block_ids)

    def get_num_new_matched_tokens(
        self, request: Request, num_computed_tokens: int
    ) -> tuple[int | None, bool]:
        if self.scheduler is None:
            return 0, False
        return self.scheduler.matched(request, num_computed_tokens)

    def update_state_after_alloc(
        self, request: Request, blocks: KVCacheBlocks, num_external_tokens: int
    ) -> None:
        if self.scheduler is not None:
            self.scheduler.admitted(request, blocks, num_external_tokens)

    def get_external_cache_hit_sources(
        self, request: Request, num_external_tokens: int
    ) -> dict[CacheHitSource, int]:
        peers = 0
        if self.scheduler is not None:
            peers = self.scheduler.from_peers(request, num_external_tokens)
        counts = {CacheHitSource.HOST: num_external_tokens - peers, CacheHitSource.P2P: peers}
        return {source: count for source, count in counts.items() if count}

    def build_connector_meta(self, scheduler_output: SchedulerOutput) -> KVConnectorMetadata:
        if self.scheduler is None:
            return StepMeta()
        return self.scheduler.step(scheduler_output)

    def update_connector_output(self, connector_output: KVConnectorOutput) -> None:
        if self.scheduler is not None:
            self.scheduler.ended(connector_output)

    def request_finished_all_groups(
        self, request: Request, block_ids: tuple[list[int], ...]
    ) -> tuple[bool, dict[str, Any] | None]:
        if self.scheduler is None:
            return False, None
        return self.scheduler.finished(request, block_ids[0]), None

    def reset_cache(self) -> bool | None:
        return True  # what is shared is not this engine's to drop

    def shutdown(self) -> None:
        if self.worker is not None:
            self.worker.close()
        if self.scheduler is not None:
            self.scheduler.close()
