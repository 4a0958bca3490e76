"""Signing keys, and the signatures of traces and cards (AAP sections 9.2 and 9.3)."""
from __future__ import annotations

import base64
import os
import stat
from typing import Callable

from . import _ed25519
from ._values import canonical


class Key:
    """An Ed25519 key with the id under which the agent's card lists it."""

    def __init__(self, seed: bytes, key_id: str) -> None:
        if len(seed) != 32:
            raise ValueError(f"a private key has 32 bytes, not {len(seed)}")
        if not 1 <= len(key_id.encode()) <= 512:
            raise ValueError(f"a key id has 1 to 512 bytes, not {len(key_id.encode())}")
        self.key_id = key_id
        self._sign, self._public = _signer(seed)

    @classmethod
    def load(cls, path: str, key_id: str) -> Key:
        """Reads a key file: the 32 raw bytes, mode 0600."""
        with open(path, "rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            if os.name == "posix" and mode != 0o600:
                raise ValueError(f"load key {path}: mode is {mode:04o}, want 0600; run: chmod 600 '{path}'")
            seed = file.read(33)
        if len(seed) != 32 or not any(seed):
            raise ValueError(f"load key {path}: not exactly 32 raw bytes (no PEM, no hexadecimal digits, no line feed)")
        return cls(seed, key_id)

    @classmethod
    def create(cls, path: str, key_id: str) -> Key:
        """Makes a new key and writes it to path, which must not exist."""
        seed = os.urandom(32)
        key = cls(seed, key_id)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(seed)
            file.flush()
            os.fsync(file.fileno())
        return key

    def public(self) -> dict[str, str]:
        """Returns the entry for extensions.plumbline.keys of the agent's card."""
        return {"key_id": self.key_id, "algorithm": "Ed25519", "public_key": base64.b64encode(self._public).decode()}

    def signature(self, payload: bytes) -> dict[str, str]:
        """Returns the signature block over the canonical form of an object."""
        value = base64.b64encode(self._sign(payload)).decode()
        return {"algorithm": "Ed25519", "key_id": self.key_id, "value": value}

    def attach(self, line: bytes) -> bytes:
        """Returns a canonical object, which has no signature, with its signature as last member."""
        return line[:-1] + b',"signature":' + canonical(self.signature(line)).encode() + b"}"


def _signer(seed: bytes) -> tuple[Callable[[bytes], bytes], bytes]:
    """Returns the function that signs, and the public key."""
    try:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
    except ImportError:
        public = _ed25519.public_key(seed)
        return (lambda message: _ed25519.sign(seed, public, message)), public
    key = Ed25519PrivateKey.from_private_bytes(seed)
    return key.sign, key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
