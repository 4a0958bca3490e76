"""Ed25519 signatures (RFC 8032) in Python alone, for where `cryptography` is not installed.

Correct, slow, and not constant in time.
"""
from __future__ import annotations

import hashlib
from typing import Tuple

P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P

Point = Tuple[int, int, int, int]  # extended coordinates: x, y, z, x*y/z

BASE_Y = 4 * pow(5, P - 2, P) % P
BASE_X = 15112221349535400772501151409588531511454012693041857206046113283949847762202
BASE: Point = (BASE_X, BASE_Y, 1, BASE_X * BASE_Y % P)


def add(p: Point, q: Point) -> Point:
    a = (p[1] - p[0]) * (q[1] - q[0]) % P
    b = (p[1] + p[0]) * (q[1] + q[0]) % P
    c = 2 * p[3] * q[3] * D % P
    d = 2 * p[2] * q[2]
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P


def doubles() -> list[Point]:
    """Returns the base point times 1, 2, 4, 8…"""
    powers = [BASE]
    while len(powers) < 256:
        powers.append(add(powers[-1], powers[-1]))
    return powers


POWERS: list[Point] = []


def times_base(n: int) -> bytes:
    """Returns the encoding of n times the base point."""
    if not POWERS:
        POWERS.extend(doubles())
    total: Point = (0, 1, 1, 0)
    for power in POWERS:
        if n & 1:
            total = add(total, power)
        n >>= 1
    inverse = pow(total[2], P - 2, P)
    x, y = total[0] * inverse % P, total[1] * inverse % P
    return (y | (x & 1) << 255).to_bytes(32, "little")


def expand(seed: bytes) -> tuple[int, bytes]:
    h = hashlib.sha512(seed).digest()
    scalar = int.from_bytes(h[:32], "little") & ((1 << 254) - 8) | 1 << 254
    return scalar, h[32:]


def number(data: bytes) -> int:
    return int.from_bytes(hashlib.sha512(data).digest(), "little") % ORDER


def public_key(seed: bytes) -> bytes:
    return times_base(expand(seed)[0])


def sign(seed: bytes, public: bytes, message: bytes) -> bytes:
    scalar, prefix = expand(seed)
    r = number(prefix + message)
    commitment = times_base(r)
    s = (r + number(commitment + public + message) * scalar) % ORDER
    return commitment + s.to_bytes(32, "little")
