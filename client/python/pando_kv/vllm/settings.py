"""What `kv_connector_extra_config` may say, read once, and when the connector stands aside.

| key | default | meaning |
|---|---|---|
| pando.socket | - | the node's socket, as `unix:/run/pando/node.sock` |
| pando.call_ms | 500 | what one question to the node may take; others wait a tenth of it |
| pando.wait_ms | 2000 | how long a request waits for blocks that a peer has or somebody computes |
| pando.copy_ms | 10000 | what loading or storing one claim may take; past it it has failed |
| pando.store_decoded | true | also store blocks that fill while decoding |
| pando.weights | sampled | `full`: the digest of the weights covers every byte |
| pando.identity | - | the user's name for the weights, in place of their digest |
| pando.prefill_tokens_per_s | 0 | a first estimate for the node; 0: it learns it |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vllm.v1.kv_cache_interface import FullAttentionSpec, MLAAttentionSpec

if TYPE_CHECKING:
    from vllm.config import VllmConfig
    from vllm.v1.kv_cache_interface import KVCacheConfig


@dataclass(frozen=True)
class Settings:
    """As the table above; times in nanoseconds."""

    socket: str
    call_ns: int = 500_000_000
    wait_ns: int = 2_000_000_000
    copy_ns: int = 10_000_000_000
    store_decoded: bool = True
    full_digest: bool = False
    identity: str = ""
    prefill_tokens_per_s: int = 0


def read_settings(extra: Mapping[str, Any]) -> Settings:
    """ValueError names the key that is unknown or has a value that it cannot have."""
    rest = {key: value for key, value in extra.items() if key.startswith("pando.")}
    weights = str(rest.pop("pando.weights", "sampled"))
    if weights not in ("sampled", "full"):
        raise ValueError(f"pando.weights is '{weights}', expected 'sampled' or 'full'")
    store_decoded = rest.pop("pando.store_decoded", True)
    if not isinstance(store_decoded, bool):
        raise ValueError(f"pando.store_decoded is {store_decoded!r}, expected true or false")
    settings = Settings(
        socket=str(rest.pop("pando.socket", "")),
        call_ns=_milliseconds(rest, "pando.call_ms", 500),
        wait_ns=_milliseconds(rest, "pando.wait_ms", 2_000),
        copy_ns=_milliseconds(rest, "pando.copy_ms", 10_000),
        store_decoded=store_decoded,
        full_digest=weights == "full",
        identity=str(rest.pop("pando.identity", "")),
        prefill_tokens_per_s=_number(rest, "pando.prefill_tokens_per_s", 0),
    )
    if rest:
        raise ValueError(f"unknown setting '{min(rest)}'")
    return settings


def _number(rest: dict[str, Any], key: str, default: int) -> int:
    value = rest.pop(key, default)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**31:
        raise ValueError(f"{key} is {value!r}, expected a whole number from 0 on")
    return value


def _milliseconds(rest: dict[str, Any], key: str, default: int) -> int:
    return _number(rest, key, default) * 1_000_000


def why_not(config: VllmConfig, kv_cache: KVCacheConfig, settings: Settings) -> str:
    """Why this engine cannot share, and what to do about it; empty if it can."""
    transfer = config.kv_transfer_config
    if not settings.socket:
        return 'no "pando.socket" in kv_connector_extra_config: name the node\'s, as unix:PATH'
    if transfer.kv_load_failure_policy != "recompute":
        return (
            f"kv_load_failure_policy is '{transfer.kv_load_failure_policy}', and a lost node would "
            'end requests: set "kv_load_failure_policy": "recompute"'
        )
    if transfer.kv_role != "kv_both":
        return f'kv_role is \'{transfer.kv_role}\': a cache needs "kv_role": "kv_both"'
    if config.speculative_config is not None:
        return "speculative decoding is not supported with it yet"
    parallel = config.parallel_config
    if parallel.pipeline_parallel_size > 1:
        return "pipeline parallelism is not supported with it yet"
    if parallel.decode_context_parallel_size > 1 or parallel.prefill_context_parallel_size > 1:
        return "context parallelism is not supported with it yet"
    if config.model_config.runner_type != "generate":
        return f"the model runs as '{config.model_config.runner_type}', not to generate"
    if config.model_config.use_mla and not config.cache_config.enable_prefix_caching:
        return (
            "this model's latent attention (MLA) reuses no prefixes here: vLLM caches none itself"
        )
    images = config.model_config.multimodal_config
    if (
        images is not None
        and images.mm_processor_cache_gb == 0
        and not config.cache_config.enable_prefix_caching
    ):
        return (
            "images have no digests with neither --enable-prefix-caching nor "
            "--mm-processor-cache-gb above 0: set one of them"
        )
    if config.load_config.load_format == "dummy" and not settings.identity:
        return (
            "the weights are dummies, which have no digest: name them with "
            '"pando.identity" if equal names mean equal weights'
        )
    return _why_not_groups(kv_cache)


def _why_not_groups(kv_cache: KVCacheConfig) -> str:
    groups = kv_cache.kv_cache_groups
    if len(groups) != 1:
        return f"the model has {len(groups)} groups of KV caches (hybrid): only one is supported"
    spec = groups[0].kv_cache_spec
    if type(spec) not in (FullAttentionSpec, MLAAttentionSpec):
        return f"the KV cache is of kind {type(spec).__name__}: only full attention is supported"
    return ""
