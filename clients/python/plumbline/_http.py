"""Requests to ingest over one kept connection, without proxies and redirections."""
from __future__ import annotations

import http.client
import json
import ssl
from typing import Any, NamedTuple, Optional
from urllib.parse import urlsplit

from ._report import Fault

MAX_ANSWER = 16 << 20


class Answer(NamedTuple):
    code: int
    body: bytes
    retry_after: Optional[float]

    def problem(self) -> tuple[str, str, list[Fault]]:
        """Returns error word, message and faults of a refused request."""
        try:
            told = json.loads(self.body)
            return str(told["error"]), str(told["message"]), faults_of(told.get("faults"))
        except (ValueError, KeyError, TypeError, AttributeError):
            if self.code < 400:
                return "", f"what answers there is no ingest of Plumbline: {self.code} {http.client.responses.get(self.code, '')}".rstrip(), []
            return "", f"ingest answered {self.code} {http.client.responses.get(self.code, '')}".rstrip(), []


def faults_of(value: Any) -> list[Fault]:
    if not isinstance(value, list):
        return []
    return [Fault(str(f.get("pointer", "")), str(f.get("message", ""))) for f in value if isinstance(f, dict)]


class Connection:
    """Not safe for several threads at a time."""

    def __init__(self, url: str, token: str, tls: Optional[ssl.SSLContext], timeout: float) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"url {url!r}: want http://host:port or https://host:port")
        self._secure, self._host, self._port = parts.scheme == "https", parts.hostname, parts.port
        self._prefix = parts.path.rstrip("/")
        self._tls, self._timeout = tls, timeout
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._connection: Optional[http.client.HTTPConnection] = None

    def request(self, method: str, path: str, media_type: str, body: bytes) -> Answer:
        """Sends one request. It raises OSError or HTTPException if there is no answer."""
        reused = self._connection is not None
        try:
            return self._once(method, path, media_type, body)
        except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError, ssl.SSLEOFError):
            if not reused:
                raise
            return self._once(method, path, media_type, body)  # ingest closed an idle connection

    def _once(self, method: str, path: str, media_type: str, body: bytes) -> Answer:
        try:
            if self._connection is None:
                self._connection = self._open()
            self._connection.request(method, self._prefix + path, body, {**self._headers, "Content-Type": media_type})
            response = self._connection.getresponse()
            text = response.read(MAX_ANSWER)
            if response.will_close or not response.isclosed():
                self.close()
            after = response.getheader("Retry-After", "")
            return Answer(response.status, text, float(after) if after.isdecimal() else None)
        except BaseException:
            self.close()
            raise

    def _open(self) -> http.client.HTTPConnection:
        if self._secure:
            return http.client.HTTPSConnection(self._host, self._port, timeout=self._timeout, context=self._tls)
        return http.client.HTTPConnection(self._host, self._port, timeout=self._timeout)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
