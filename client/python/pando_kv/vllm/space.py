"""The fields of a replica's space: all that shapes its KV. Nothing crosses between two spaces.

The scheduler's side tells what the model is, each worker how its KV lies in memory; the node joins
them. Two versions of vLLM are two spaces, for their kernels may lay out KV differently, unless
EQUAL_VERSIONS has them.
"""

from __future__ import annotations

import hashlib
import json
import os
from typing import TYPE_CHECKING, Any

import torch
import vllm

from pando_kv import KvLayout
from pando_kv.vllm import weights

if TYPE_CHECKING:
    from vllm.config import ModelConfig, VllmConfig
    from vllm.v1.kv_cache_interface import KVCacheSpec

    from pando_kv.vllm.settings import Settings

Fields = list[tuple[str, str]]

# Versions of vLLM that are one space: each tuple names some of which each loads what the others
# have stored, with answers equal to the bit (tests/engines run with each beside each). None yet.
EQUAL_VERSIONS: tuple[tuple[str, ...], ...] = ()

# Of vLLM's formats of weights: those that take safetensors where there are some.
_PREFER_SAFETENSORS = ("auto", "hf", "safetensors", "fastsafetensors", "instanttensor")

# What a configuration says of itself, not of the model.
_NOT_OF_THE_MODEL = {"_name_or_path", "transformers_version", "architectures_path", "use_cache"}


def model_fields(config: VllmConfig, spec: KVCacheSpec, settings: Settings) -> Fields:
    """FileNotFoundError or ValueError: the weights cannot be described."""
    model = config.model_config
    hf = model.hf_text_config
    name = model.model
    load_format = str(config.load_config.load_format)
    identity = settings.identity
    if not identity:
        source = model.model_weights or name
        every = load_format not in _PREFER_SAFETENSORS
        identity = weights.digest(source, model.revision, settings.full_digest, every)
    return [
        ("connector", "pando_kv.vllm 1"),
        ("vllm", _version(vllm.__version__)),
        ("torch", torch.__version__),
        ("model", os.path.basename(os.path.normpath(name)) if os.path.exists(name) else name),
        ("revision", str(model.revision or "")),
        ("weights", identity),
        ("load_format", load_format),
        ("config", _digest_of(model.hf_config.to_dict())),
        ("images", _images(model)),
        ("rope", _text(getattr(hf, "rope_parameters", None) or getattr(hf, "rope_scaling", None))),
        ("sliding_window", str(getattr(spec, "sliding_window", None))),
        ("dtype", str(model.dtype)),
        ("kv_dtype", f"{config.cache_config.cache_dtype} {getattr(spec, 'dtype', '')}"),
        ("quantization", str(model.quantization)),
        ("kv_spec", type(spec).__name__),
        ("tensor_parallel", str(config.parallel_config.tensor_parallel_size)),
        ("lora", _lora(config)),
    ]


def _version(version: str) -> str:
    return next((equal[0] for equal in EQUAL_VERSIONS if version in equal), version)


def _images(model: ModelConfig) -> str:
    """What images, sounds and videos are made into before the model sees them: vLLM's digests of
    these (prompt.py has them) are of what was sent. The files are the processors' settings and
    code, and others that are not worth telling apart.
    """
    if model.multimodal_config is None:
        return "none"
    folder = weights.local(model.model, model.revision)
    files = {
        file.name: hashlib.blake2b(file.read_bytes(), digest_size=16).hexdigest()
        for pattern in ("*.json", "*.py")
        for file in folder.glob(pattern)
    }
    return _digest_of({"settings": vars(model.multimodal_config), "files": files})


def _lora(config: VllmConfig) -> str:
    """Its kernels follow from these; which adapter a request has is not the space's."""
    if config.lora_config is None:
        return "off"
    shaping = {k: str(v) for k, v in vars(config.lora_config).items() if k != "max_cpu_loras"}
    return _text(shaping)


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def _digest_of(values: dict[str, Any]) -> str:
    return hashlib.blake2b(_text(_of_the_model(values)).encode(), digest_size=16).hexdigest()


def _of_the_model(value: Any) -> Any:
    """Without what a configuration, or one inside it, says of itself."""
    if not isinstance(value, dict):
        return value
    return {k: _of_the_model(v) for k, v in value.items() if k not in _NOT_OF_THE_MODEL}


class UnknownLayout(Exception):
    """The KV tensors lie in a way that whole blocks cannot be copied in."""


def layout(caches: dict[str, torch.Tensor], blocks: int) -> KvLayout:
    """Where the blocks of all layers lie, in the layers' order.

    A layer's tensor has its blocks outermost, or keys and values outermost and its blocks next;
    either way a block is contiguous, and copied as bytes: what its shape says of its inside need
    not be true. UnknownLayout if it is none of that, or not in host memory.
    """
    pieces: list[tuple[int, int, int]] = []
    for name, tensor in caches.items():
        if not isinstance(tensor, torch.Tensor) or tensor.device.type != "cpu":
            raise UnknownLayout(
                f"{name} is not in host memory: this version shares only from there"
            )
        parts = [tensor] if tensor.shape[0] == blocks else []
        if not parts and tensor.dim() > 2 and tensor.shape[0] == 2 and tensor.shape[1] == blocks:
            parts = [tensor[0], tensor[1]]
        if not parts or not all(part[0].is_contiguous() for part in parts):
            shape, stride = tuple(tensor.shape), tensor.stride()
            raise UnknownLayout(f"{name} has shape {shape}, strides {stride}, of {blocks} blocks")
        for part in parts:
            size = part.element_size()
            pieces.append((part.data_ptr(), part.stride(0) * size, part[0].numel() * size))
    return KvLayout(pieces, blocks)


def check(made: KvLayout, caches: dict[str, torch.Tensor], blocks: int) -> None:
    """A pattern, taken through the copies' way from one block to another, must have come.

    For a cache that nothing uses yet: two blocks are overwritten, and zero afterwards.
    UnknownLayout if the copies do not work here, or `made` does not name the tensors' own blocks.
    """
    if blocks < 2:
        return
    source, target = blocks - 2, blocks - 1
    if not made.self_test(source, target):
        raise UnknownLayout("a pattern that was copied came out as another: do not use this build")
    for name, tensor in caches.items():
        for part in [tensor] if tensor.shape[0] == blocks else [tensor[0], tensor[1]]:
            seen = [part[block].contiguous().view(torch.uint8) for block in (source, target)]
            if not seen[0].any() or not torch.equal(*seen):
                raise UnknownLayout(f"the blocks of {name} do not lie where its strides say")
            part[source].zero_()
            part[target].zero_()


def layout_fields(config: VllmConfig, spec: KVCacheSpec, caches: dict[str, torch.Tensor]) -> Fields:
    """How the KV of this worker lies inside its blocks, and which kernels wrote it."""
    shapes = [
        (name, str(t.dtype), tuple(t.shape[1:]), t.stride()[1:]) for name, t in caches.items()
    ]
    layers = config.compilation_config.static_forward_context
    backends = sorted({_backend(layers.get(name)) for name in caches})
    return [
        ("layers", f"{len(caches)} {_digest_of({'shapes': shapes})}"),
        ("layer", _text(shapes[0][1:])),
        ("backend", " ".join(backends)),
        ("isa", _isa(config, spec, backends)),
    ]


def _backend(layer: Any) -> str:
    get = getattr(layer, "get_attn_backend", None)
    return str(get().get_name()) if get is not None else type(layer).__name__


def _isa(config: VllmConfig, spec: KVCacheSpec, backends: list[str]) -> str:
    """vLLM's CPU kernels permute keys and values inside a block as their instructions like it."""
    if "CPU_ATTN" not in backends:
        return str(torch.backends.cpu.get_cpu_capability())
    from vllm.v1.attention.backends import cpu_attn

    return str(
        cpu_attn._get_attn_isa(
            spec.dtype, spec.block_size, spec.head_size, config.cache_config.cache_dtype
        )
    )
