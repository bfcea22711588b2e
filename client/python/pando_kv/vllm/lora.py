"""Digests of LoRA adapters: requests whose adapters have equal ones have equal adapters.

vLLM reads an adapter's files when it wants to, and never again while it has the adapter. So a
digest stands for what is being computed with only if the files have not changed since the engine
began, nor anything that leads to them: a folder or link that was put in place of another brings
files as old as they may be. Otherwise there is none.
"""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from pando_kv.vllm import weights

if TYPE_CHECKING:
    from vllm.lora.request import LoRARequest
    from vllm.v1.request import Request

_SETTLED = 2_000_000_000  # ns: files that changed just before the engine began are not trusted

_Files = tuple[tuple[str, int, int, int, int], ...]


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

    def known(self, request: Request) -> bool:
        """It has no adapter, or still the one that its digest is of."""
        return request.lora_request is None or bool(self.digest(request.lora_request))

    def _read(self, path: str, files: _Files) -> str:
        folder = Path(path).expanduser().absolute()
        changed = [at for *_, at in files]
        changed += [folder.stat().st_ctime_ns, *_replaced(folder)]
        if max(changed) >= self._began_ns - _SETTLED:
            return ""
        config = hashlib.blake2b((folder / "adapter_config.json").read_bytes(), digest_size=16)
        return f"{weights.digest(str(folder), None, self._full, every=True)} {config.hexdigest()}"


def _stat(folder: Path) -> _Files:
    """Of each file: name, device, inode, size and when it changed last (which nobody can set)."""
    stats = [(entry.name, entry.stat()) for entry in os.scandir(folder) if entry.is_file()]
    return tuple(sorted((name, s.st_dev, s.st_ino, s.st_size, s.st_ctime_ns) for name, s in stats))


def _replaced(path: Path) -> Iterator[int]:
    """When names on the way to it may have come into another's place, links followed. A rename
    changes a folder's ctime alone; what comes and goes inside changes its mtime with it.
    """
    for each in (path, *path.parents):
        status = each.lstat()
        if stat.S_ISLNK(status.st_mode):
            yield status.st_ctime_ns
            yield from _replaced(each.parent / os.readlink(each))
        elif status.st_ctime_ns != status.st_mtime_ns:
            yield status.st_ctime_ns
