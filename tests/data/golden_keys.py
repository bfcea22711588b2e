#!/usr/bin/env python3
"""Recomputes golden_keys.txt from the formula alone, with nothing of the C++ code but xxHash itself.

  tests/data/golden_keys.py      exit status 0 if the file says the same

A key is XXH3-128 over fields, each `tag u32, length u32, bytes`, little-endian, with the 192-byte secret
that XXH3_generateSecret makes of the cluster's secret.
"""
import ctypes
import os
import struct
import sys

KEY_ABOVE, TOKENS, EXTRA, IDENTITY, SCOPE = 1, 2, 3, 4, 5


class Hash128(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]


XXH = ctypes.CDLL("libxxhash.so.0")
XXH.XXH3_128bits_withSecret.restype = Hash128
XXH.XXH3_128bits_withSecret.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]
XXH.XXH3_generateSecret.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]


class Chain:
    def __init__(self, secret):
        made = ctypes.create_string_buffer(192)
        XXH.XXH3_generateSecret(made, 192, secret, len(secret))
        self.secret = made.raw

    def key(self, *fields):
        data = b"".join(struct.pack("<II", tag, len(value)) + value for tag, value in fields)
        value = XXH.XXH3_128bits_withSecret(data, len(data), self.secret, len(self.secret))
        return struct.pack("<QQ", value.low, value.high)

    def root(self, identity, scope):
        return self.key((IDENTITY, identity), (SCOPE, scope))

    def scope(self, above, scope):
        return self.key((KEY_ABOVE, above), (SCOPE, scope))

    def block(self, above, tokens, extra=b""):
        return self.key((KEY_ABOVE, above), (TOKENS, struct.pack(f"<{len(tokens)}I", *tokens)), (EXTRA, extra))


def lines(name, secret):
    chain = Chain(secret)
    tokens = [i * 1000 for i in range(16)]
    steps = {"root": chain.root(b"model=m\nblock=16\n", b"")}
    steps["block"] = chain.block(steps["root"], tokens)
    steps["scope"] = chain.scope(steps["block"], b"tenant/a")
    steps["extra"] = chain.block(steps["scope"], tokens, b"image:0123456789abcdef")
    steps["limits"] = chain.block(steps["extra"], [0xFFFFFFFF] * 16)
    steps["long"] = chain.block(steps["limits"], [7] * 1024, b"x" * 4096)
    steps["one"] = chain.block(steps["long"], [1])
    steps["root_scope"] = chain.root(b"model=m\nblock=16\n", b"tenant/a")
    return [f"{name} {step} {high:016x}{low:016x}" for step, (low, high) in
            ((step, struct.unpack("<QQ", key)) for step, key in steps.items())]


def main():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden_keys.txt")
    golden = [line for line in open(path).read().splitlines() if line and not line.startswith("#")]
    computed = lines("default", b"pando: block keys, formula 1") + lines("secret", b"secret")
    for found, wanted in zip(golden, computed):
        if found != wanted:
            print(f"golden_keys.txt has '{found}', the formula gives '{wanted}'")
    return 0 if golden == computed else 1


if __name__ == "__main__":
    sys.exit(main())
