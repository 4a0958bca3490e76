"""Recorder: what an agent's code uses. See docs/CLIENTS.md."""
from __future__ import annotations

import atexit
import inspect
import json
import os
import ssl
import sys
import threading
import uuid
import weakref
from collections import OrderedDict
from typing import Any, Callable, Iterable, Optional, TypeVar, Union
from urllib.parse import quote

from . import _session
from ._delivery import Delivery
from ._http import Connection
from ._keys import Key
from ._report import OnError, OnWarning, PlumblineError, Reporter
from ._session import Counter, Session, text_of
from ._spool import Spool, default_root
from ._trace import MAX_ID_BYTES, MAX_TRACE_BYTES, Fault, Invalid, build, check
from ._values import MAX_VALUE_BYTES, canonical, plain

F = TypeVar("F", bound=Callable[..., Any])

DEFAULT_URL = "http://127.0.0.1:8080"
MAX_SESSIONS = 1000  # ids whose numbers are remembered

REQUEST_SECONDS = 30.0

VALUE_BYTES = (MAX_VALUE_BYTES, 16 << 10, 1 << 10)  # what a value may have: the next smaller one if the trace is too large


class Recorder:
    """Puts what one agent decides on record. All methods may be called from any thread."""

    def __init__(
        self,
        agent_id: str,
        card_id: str,
        *,
        url: Optional[str] = None,
        token: Optional[str] = None,
        spool: Union[str, bool, None] = None,
        spool_bytes: int = 256 << 20,
        key: Optional[Key] = None,
        durable: bool = False,
        on_error: Optional[OnError] = None,
        on_warning: Optional[OnWarning] = None,
        exit_timeout: float = 5.0,
        tls: Optional[ssl.SSLContext] = None,
        request_timeout: float = REQUEST_SECONDS,
    ) -> None:
        for name, value in (("agent_id", agent_id), ("card_id", card_id)):
            if not isinstance(value, str) or not 1 <= len(value.encode()) <= MAX_ID_BYTES:
                raise ValueError(f"{name} {value!r}: want a text of 1 to {MAX_ID_BYTES} bytes")
        if durable and spool is False:
            raise ValueError("durable=True needs a spool")
        for name, handler in (("on_error", on_error), ("on_warning", on_warning)):
            if inspect.iscoroutinefunction(handler):
                raise ValueError(f"{name}: want a function that is not async, because nobody would await it")
        self.agent_id, self.card_id = agent_id, card_id
        self._url = url or os.environ.get("PLUMBLINE_URL") or DEFAULT_URL
        self._token = (os.environ.get("PLUMBLINE_TOKEN", "") if token is None else token).strip()
        if not all("!" <= letter <= "~" for letter in self._token):
            raise ValueError("token: it has a character that no token has, such as a space or a line feed")
        self._tls, self._timeout, self._key, self._exit_timeout = tls, request_timeout, key, exit_timeout
        self._connection()  # refuses a wrong address
        self._reporter = Reporter(on_error, on_warning)
        root = None if spool is False else default_root() if spool is None or spool is True else spool
        self._delivery = Delivery(self._connection, Spool(root, agent_id), spool_bytes, key, durable, self._reporter, self._url)
        self._lock = threading.RLock()
        self._counters: OrderedDict[str, Counter] = OrderedDict()
        self._outside = Session(self, None, Counter(None), False)
        self._delivery.start()  # also sends what an earlier process left
        _all.add(self)

    def _connection(self) -> Connection:
        return Connection(self._url, self._token, self._tls, self._timeout)

    def session(self, session_id: Optional[str] = None, *, first_number: Optional[int] = 1, end: bool = True) -> Session:
        """Begins a session, or continues the one with that id. first_number None: its traces have no numbers."""
        if session_id is not None and not isinstance(session_id, str):
            session_id = text_of(session_id)
        if first_number is not None and not isinstance(first_number, int):
            self._reporter.error("invalid", f"session(): first_number is {text_of(first_number)!r}, want an integer: its traces have no numbers")
            first_number = None
        counter = Counter(first_number)
        if first_number is not None:
            session_id = session_id or str(uuid.uuid4())
            with self._lock:
                known = self._counters.pop(session_id, counter)
                if known.next is not None and known.next > first_number:
                    counter = known
                self._counters[session_id] = counter
                if len(self._counters) > MAX_SESSIONS:
                    self._counters.popitem(last=False)
        return Session(self, session_id or str(uuid.uuid4()), counter, end)

    def tool(self, function: Any = None, *, name: Optional[str] = None, **decision: Any) -> Any:
        """Wraps a function as Session.tool does, for the session whose with block a call runs in."""
        return _session.wrap(self, self._current, function, name, decision)

    def _current(self) -> Session:
        session = _session.current.get()
        return session if session is not None and session._recorder is self else self._outside

    def flush(self, timeout: float = 30.0) -> bool:
        """Waits until ingest has answered for everything recorded so far; reports whether it has."""
        return self._delivery.flush(timeout)

    def close(self, timeout: float = 30.0) -> bool:
        """Flushes, then stops the recorder. What ingest has not answered for stays in the spool."""
        _all.discard(self)
        return self._delivery.close(timeout)

    def stats(self) -> dict[str, int]:
        """Returns how many traces were recorded, accepted, duplicate, refused, forbidden, invalid, dropped, and wait."""
        return self._delivery.stats()

    def register_card(self, card: Union[dict[str, Any], str, bytes]) -> str:
        """Registers the agent's card: "registered" or "unchanged". It waits, and raises PlumblineError."""
        try:
            raw = card.encode() if isinstance(card, str) else card if isinstance(card, bytes) else canonical(plain(card)).encode()
            members = json.loads(raw)
            card_id = str(members["card_id"])
        except (ValueError, KeyError, TypeError) as error:
            raise PlumblineError("invalid", "this card is no JSON object with a card_id") from error
        if self._key is not None and not members.get("signature") and self._key.public() in listed_keys(members):
            members.pop("signature", None)
            raw = self._key.attach(canonical(plain(members)).encode())
        connection = self._connection()
        try:
            answer = connection.request("PUT", "/v1/cards/" + quote(card_id, safe=""), "application/aap-alignment-card+json", raw)
        except Exception as error:
            raise PlumblineError("unreachable", f"{self._url} cannot be reached: {error}") from error
        finally:
            connection.close()
        if answer.code not in (200, 201):
            word, message, faults = answer.problem()
            raise PlumblineError("refused", f"register card {card_id}: {message} (HTTP {answer.code} {word})", faults=faults)
        return "registered" if answer.code == 201 else "unchanged"

    # What sessions call. None of these raises.

    def _record(self, trace_id: Any, session_id: Optional[str], number: Optional[int], timestamp: Any, fields: dict[str, Any]) -> None:
        try:
            head = {"trace_id": plain(trace_id), "agent_id": self.agent_id, "card_id": self.card_id, "timestamp": plain(timestamp)}
            limit = MAX_TRACE_BYTES - (1024 if self._key else 0)  # room for the signature
            if hasattr(fields.get("alternatives"), "__next__"):
                fields["alternatives"] = list(fields["alternatives"])
            for most in VALUE_BYTES:
                trace = build(head, session_id, number, self._left_out, most, **fields)
                line = canonical(trace).encode()
                if len(line) <= limit:
                    break
            faults = check(trace)
            if len(line) > limit:
                faults.append(Fault("", f"{len(line)} bytes, a trace may have {limit}"))
            if faults:
                raise Invalid(faults)
            _close_with_multiprocessing()
            self._delivery.submit(line)
        except Invalid as invalid:
            self._delivery.invalid()
            self._reporter.error("invalid", str(invalid), text_of(trace_id), invalid.faults)
        except Exception as error:
            self._delivery.invalid()
            self._reporter.error("invalid", f"{type(error).__name__}: {text_of(error)}", text_of(trace_id))

    def _left_out(self) -> None:
        self._reporter.warning("left_out", "a value is too large or too deep, and is left out of the trace", "")

    def _ignored(self, function: str, names: Iterable[str]) -> None:
        for name in names:
            self._reporter.warning("ignored_argument", f"{function}() has no argument {name!r}, and ignores it", "")

    def _end(self, session: Session) -> None:
        members = {"agent_id": self.agent_id, "session_id": plain(session.session_id)}
        self._delivery.submit_end(canonical({"end_session": members}).encode())

    def _after_fork(self) -> None:
        self._lock = threading.RLock()
        self._reporter.after_fork()
        self._delivery.reset()

    def _at_exit(self) -> None:
        self._delivery.close(self._exit_timeout, leave_early=True)


def listed_keys(card: dict[str, Any]) -> list[Any]:
    """Returns extensions.plumbline.keys of a card."""
    of: Any = card
    for name in ("extensions", "plumbline", "keys"):
        of = of.get(name) if isinstance(of, dict) else None
    return of if isinstance(of, list) else []


_all: weakref.WeakSet[Recorder] = weakref.WeakSet()


def _close_all() -> None:
    for recorder in list(_all):
        recorder._at_exit()


_finalized = False  # whether the end of this process as a child of multiprocessing closes all


def _close_with_multiprocessing() -> None:
    """Closes the recorders at the end of a child of multiprocessing, which may end without atexit. Its start forgets what was registered before."""
    global _finalized
    process, util = sys.modules.get("multiprocessing.process"), sys.modules.get("multiprocessing.util")
    if not _finalized and process is not None and util is not None and process.parent_process() is not None:
        _finalized = True
        util.Finalize(None, _close_all, exitpriority=0)


def _forget_all() -> None:
    global _finalized
    _finalized = False
    _session.after_fork()
    for recorder in list(_all):
        recorder._after_fork()


atexit.register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
