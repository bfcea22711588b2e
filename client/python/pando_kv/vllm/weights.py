"""A digest of a model's weights, from its files, in seconds also for large ones.

Of each tensor: its name, dtype, shape, and its first, its last and 16 pseudo-randomly placed
windows of 4 KiB. Training changes all tensors nearly everywhere, so that is enough to tell two
versions apart; who patches a few bytes of a tensor by hand sets `pando.weights` to `full`, which
reads every byte. Files that are not safetensors are taken as one tensor each.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

WINDOW = 4096
WINDOWS = 16
_READ = 1 << 20
_OTHERS = ("*.bin", "*.pt", "*.pth", "*.gguf")
_HEADER_LIMIT = 100_000_000  # as safetensors itself has it


@dataclass(frozen=True)
class _Tensor:
    name: str
    kind: str  # dtype and shape
    file: Path
    begin: int  # bytes
    end: int


def digest(model: str, revision: str | None, full: bool, every: bool = False) -> str:
    """Of the weights of `model`: a folder, a file, or a repository in the local cache of the hub.
    `every`: also of files that stand beside safetensors, for a loader that may prefer them.

    Equal for equal weights, whatever their files and folders are called. FileNotFoundError or
    ValueError if there are none, or if they cannot be read.
    """
    hasher = hashlib.blake2b(digest_size=16)
    for tensor in sorted(_tensors(_files(model, revision, every)), key=lambda t: (t.name, t.kind)):
        size = tensor.end - tensor.begin
        _add(hasher, f"{tensor.name}\0{tensor.kind}\0{size}".encode())
        with open(tensor.file, "rb", buffering=0) as file:
            for begin, end in _windows(tensor.name, size, full):
                _add(hasher, _read(file.fileno(), tensor.begin + begin, end - begin))
    return hasher.hexdigest()


def _add(hasher: hashlib.blake2b, data: bytes) -> None:
    hasher.update(struct.pack("<Q", len(data)))
    hasher.update(data)


def _read(fd: int, offset: int, size: int) -> bytes:
    data = os.pread(fd, size, offset)
    if len(data) != size:
        raise ValueError(f"a file of weights ends before byte {offset + size}")
    return data


def _windows(name: str, size: int, full: bool) -> Iterator[tuple[int, int]]:
    if full or size <= (WINDOWS + 2) * WINDOW:
        for begin in range(0, size, _READ):
            yield begin, min(begin + _READ, size)
        return
    yield 0, WINDOW
    yield size - WINDOW, size
    draws = hashlib.shake_128(f"{name}\0{size}".encode()).digest(8 * WINDOWS)
    for (draw,) in struct.iter_unpack("<Q", draws):
        begin = draw % (size - WINDOW)
        yield begin, begin + WINDOW


def local(model: str, revision: str | None) -> Path:
    """Where `model` is on this machine: its folder, or its only file."""
    path = Path(model)
    if path.exists():
        return path
    from huggingface_hub import snapshot_download

    return Path(snapshot_download(model, revision=revision, local_files_only=True))


def _files(model: str, revision: str | None, every: bool) -> list[Path]:
    path = local(model, revision)
    if path.is_file():
        return [path]
    found = sorted(path.glob("*.safetensors"))
    if every or not found:
        found += [file for kind in _OTHERS for file in sorted(path.glob(kind))]
    if not found:
        raise FileNotFoundError(f"no weights in {path}")
    return found


def _tensors(files: list[Path]) -> Iterator[_Tensor]:
    for file in files:
        if file.suffix != ".safetensors":
            yield _Tensor(file.name, "file", file, 0, file.stat().st_size)
            continue
        with open(file, "rb") as opened:
            (length,) = struct.unpack("<Q", opened.read(8))
            if length > _HEADER_LIMIT:
                raise ValueError(f"{file} has a header of {length} bytes: no safetensors file")
            header = json.loads(opened.read(length))
        header.pop("__metadata__", None)
        for name, tensor in header.items():
            begin, end = (8 + length + offset for offset in tensor["data_offsets"])
            yield _Tensor(name, f"{tensor['dtype']}{tensor['shape']}", file, begin, end)
