"""Digests of LoRA adapters: requests whose adapters have equal ones have equal adapters.

vLLM reads an adapter's files when it wants to, and never again while it has the adapter. So a
digest stands for what is being computed with only if the files have not changed since the engine
began; otherwise there is none.
"""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from pando_kv.vllm import weights

if TYPE_CHECKING:
    from vllm.lora.request import LoRARequest

_SETTLED = 2_000_000_000  # ns: files that changed just before the engine began are not trusted

_Files = tuple[tuple[str, int, int, int], ...]


class Adapters:
    """Of one engine. To be made before it can have read any adapter."""

    def __init__(self, full_digest: bool) -> None:
        self._full = full_digest
        self._began_ns = time.time_ns()
        self._known: dict[int, tuple[str, _Files, str]] = {}  # by vLLM's id: path, files, digest

    def digest(self, adapter: LoRARequest) -> str:
        """Empty: what the engine has under this id cannot be told."""
        if adapter.load_inplace:
            return ""
        try:
            files = _stat(Path(adapter.lora_path).expanduser())
            known = self._known.get(adapter.lora_int_id)
            if known is None:
                known = (adapter.lora_path, files, self._read(adapter.lora_path, files))
                self._known[adapter.lora_int_id] = known
        except (OSError, ValueError):
            return ""
        path, before, digest = known
        if not digest or (path, before) != (adapter.lora_path, files):
            return ""
        return f"{digest} {adapter.is_3d_lora_weight}"

    def _read(self, path: str, files: _Files) -> str:
        if any(changed >= self._began_ns - _SETTLED for *_, changed in files):
            return ""
        folder = Path(path).expanduser()
        config = hashlib.blake2b((folder / "adapter_config.json").read_bytes(), digest_size=16)
        return f"{weights.digest(str(folder), None, self._full)} {config.hexdigest()}"


def _stat(folder: Path) -> _Files:
    """Of each file: name, inode, size and when it changed last (which nobody can set)."""
    stats = [(entry.name, entry.stat()) for entry in os.scandir(folder) if entry.is_file()]
    return tuple(sorted((name, s.st_ino, s.st_size, s.st_ctime_ns) for name, s in stats))
