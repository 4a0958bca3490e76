"""Reports what goes wrong to the agent's on_error and on_warning."""
from __future__ import annotations

import logging
import threading
import time
from typing import Callable, NamedTuple, Optional, Sequence

log = logging.getLogger("plumbline")

INTERVAL = 10.0  # seconds between two reports of a condition that lasts

# Conditions are reported once per interval; everything else concerns one trace.
CONDITIONS = frozenset(("unreachable", "request", "spool", "dropped", "internal"))


class Fault(NamedTuple):
    pointer: str  # JSON pointer into the trace
    message: str


class PlumblineError(Exception):
    """Something that went wrong. docs/CLIENTS.md lists the kinds."""

    def __init__(self, kind: str, message: str, trace_id: str = "", faults: Sequence[Fault] = (), count: int = 1):
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.trace_id = trace_id
        self.faults = list(faults)
        self.count = count

    def __str__(self) -> str:
        faults = "".join(f"; {f.pointer}: {f.message}" if f.pointer else f"; {f.message}" for f in self.faults)
        trace = f" (trace {self.trace_id})" if self.trace_id else ""
        return f"{self.kind}: {self.message}{trace}{faults}"


OnError = Callable[[PlumblineError], None]
OnWarning = Callable[[str, str, str], None]


class Reporter:
    """Calls on_error and on_warning, at most as often as docs/CLIENTS.md says, and never raises."""

    def __init__(self, on_error: Optional[OnError], on_warning: Optional[OnWarning]) -> None:
        self._on_error, self._on_warning = on_error or self._log_error, on_warning or self._log_warning
        self._limited = CONDITIONS if on_error else None  # None: every kind, so that a log is not flooded
        self._lock = threading.RLock()  # a signal handler may interrupt its holder and report, too
        self._last: dict[str, float] = {}
        self._held: dict[str, PlumblineError] = {}  # not reported yet, with their number
        self._warned: set[str] = set()

    def error(self, kind: str, message: str, trace_id: str = "", faults: Sequence[Fault] = (), count: int = 1) -> None:
        error = PlumblineError(kind, message, trace_id, faults, count)
        with self._lock:
            if self._limited is None or kind in self._limited:
                held = self._held.get(kind)
                if held is not None:
                    error.count += held.count
                if kind in self._last and time.monotonic() - self._last[kind] < INTERVAL:
                    self._held[kind] = error
                    return
                self._held.pop(kind, None)
                self._last[kind] = time.monotonic()
        self._call(self._on_error, error)

    def release(self, everything: bool = False) -> None:
        """Reports what was held back, if its interval is over or everything is asked for."""
        if not self._held:
            return
        due = []
        with self._lock:
            for kind in list(self._held):
                if everything or time.monotonic() - self._last[kind] >= INTERVAL:
                    due.append(self._held.pop(kind))
                    self._last[kind] = time.monotonic()
        for error in due:
            self._call(self._on_error, error)

    def warning(self, code: str, message: str, trace_id: str) -> None:
        with self._lock:
            if code in self._warned:
                return
            self._warned.add(code)
        self._call(self._on_warning, code, message, trace_id)

    def internal(self, where: str, error: BaseException) -> None:
        self.error("internal", f"{where}: {type(error).__name__}: {error}")

    def after_fork(self) -> None:
        self._lock = threading.RLock()

    @staticmethod
    def _call(handler: Callable[..., None], *arguments: object) -> None:
        try:
            handler(*arguments)
        except Exception:  # the agent's handler must not stop the delivery
            log.exception("plumbline: a handler of errors or warnings failed")

    @staticmethod
    def _log_error(error: PlumblineError) -> None:
        more = f" ({error.count} times)" if error.count > 1 else ""
        log.error("%s%s", error, more)

    @staticmethod
    def _log_warning(code: str, message: str, trace_id: str) -> None:
        log.warning("%s: %s (%sreported once)", code, message, f"trace {trace_id}; " if trace_id else "")
