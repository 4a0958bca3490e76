"""Delivers lines to ingest: one thread writes them to the spool, one sends what the spool has.

A line is in exactly one of these: the queue (memory), the open segment, the backlog, or
the segment that is being sent. A segment leaves when each of its lines has an outcome.
"""
from __future__ import annotations

import http.client
import json
import random
import threading
import time
from collections import deque
from typing import Any, Callable, Optional

from ._http import Connection, faults_of
from ._keys import Key
from ._report import Reporter
from ._spool import Segment, Spool

SEGMENT_LINES, SEGMENT_BYTES, SEGMENT_SECONDS = 500, 512 << 10, 0.25
MEMORY_BYTES = 16 << 20  # of the queue, and of segments without a file
IDLE_SECONDS = 10.0  # between two looks at what was held back
TIDY_SECONDS = 60.0  # between two looks for dead owners
FIRST_PAUSE, LONGEST_PAUSE, LONGEST_REQUEST = 0.25, 30.0, 300.0

COUNTS = ("recorded", "accepted", "duplicate", "refused", "forbidden", "invalid", "dropped", "waiting")

END = b'{"end_session":'  # begins a line that ends a session; every other line is a trace


class Wait(Exception):
    """The lines must be sent again. after is what ingest asked for, in seconds."""

    def __init__(self, kind: str, message: str, after: Optional[float] = None) -> None:
        super().__init__(message)
        self.kind, self.after = kind, after


class Delivery:
    def __init__(self, connection: Callable[[], Connection], spool: Spool, spool_bytes: int, key: Optional[Key],
                 durable: bool, reporter: Reporter, url: str) -> None:
        self._connect, self._spool, self._spool_bytes = connection, spool, spool_bytes
        self._key, self._durable, self._reporter, self._url = key, durable, reporter, url
        self._most_lines = SEGMENT_LINES
        self.reset()

    def reset(self) -> None:
        """Begins with nothing, also in a process that was forked: its parent sends what it has."""
        self._cond = threading.Condition()
        self._files = threading.RLock()  # held while the open segment is written; a signal handler may close the recorder meanwhile
        self._queue: deque[bytes] = deque()
        self._queued_bytes = 0
        self._open: Optional[Segment] = None
        self._backlog: deque[Segment] = deque()
        self._current: Optional[Segment] = None
        self._bytes = 0  # of all segments
        self._writing = self._rotate = self._wake = self._closed = self._stopped = self._kick = False
        self._failures = 0  # attempts to send that failed, in all
        self._threads: list[threading.Thread] = []
        self._spool = Spool(None, "") if self._spool.agent is None else self._spool.again()
        self._counts: dict[str, int] = dict.fromkeys(COUNTS, 0)
        self._notes: deque[tuple[str, str, int]] = deque()  # to be reported once no lock is held

    # What the agent's threads call. None of these waits for anything but the lock.

    def submit(self, line: bytes) -> None:
        """Takes a trace, or drops and counts it."""
        store_now = False
        with self._cond:
            self._counts["recorded"] += 1
            if self._closed:
                self._drop(1, "the recorder is closed")
            elif self._queued_bytes + len(line) > MEMORY_BYTES:
                self._drop(1, "the queue is full, because the spool is written too slowly")
            else:
                self._counts["waiting"] += 1
                if self._durable:
                    self._start()
                    store_now = True
                else:
                    self._put(line)
        if store_now:
            self._store([line], sync=True)
            with self._cond:
                self._wake = True
                self._cond.notify_all()
        self._tell()

    def submit_end(self, line: bytes) -> None:
        with self._cond:
            if self._closed or self._queued_bytes + len(line) > MEMORY_BYTES:
                self._drop(0, "the recorder is closed" if self._closed else "the queue is full")
            else:
                self._put(line)
        self._tell()

    def invalid(self) -> None:
        with self._cond:
            self._counts["recorded"] += 1
            self._counts["invalid"] += 1

    def _put(self, line: bytes) -> None:
        self._queue.append(line)
        self._queued_bytes += len(line)
        self._start()
        self._cond.notify_all()

    def start(self) -> None:
        with self._cond:
            self._start()

    def _start(self) -> None:
        if self._threads:
            return
        for target in (self._write_loop, self._send_loop):
            thread = threading.Thread(target=self._guarded, args=(target,), name="plumbline", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # the interpreter is ending: close writes the queue itself
                return
            self._threads.append(thread)

    def _drop(self, traces: int, why: str) -> None:
        """Counts dropped traces; none are the end of a session. The caller holds the lock."""
        self._counts["dropped"] += traces
        what = "traces were dropped" if traces else "the end of a session was dropped, so it ends when it is idle"
        self._note("dropped", f"{what}: {why}", traces)

    def _note(self, kind: str, message: str, count: int = 1) -> None:
        self._notes.append((kind, message, count))

    def _tell(self) -> None:
        """Reports what was noted. The caller holds no lock, because the agent's handler runs here."""
        while self._notes:
            try:
                kind, message, count = self._notes.popleft()
            except IndexError:
                return  # another thread reports it
            self._reporter.error(kind, message, count=count)

    def stats(self) -> dict[str, int]:
        with self._cond:
            return dict(self._counts)

    # What waits.

    def flush(self, timeout: float, leave_early: bool = False) -> bool:
        """Waits until every line has an outcome; with leave_early, only for one more attempt."""
        with self._cond:
            self._rotate = self._kick = True
            failures = self._failures
            self._cond.notify_all()
            early = leave_early and self._spool.agent is not None
            self._cond.wait_for(lambda: self._idle() or not self._threads or (early and self._spooled() and self._failures > failures), timeout)
            return self._idle()

    def _idle(self) -> bool:
        return not (self._queue or self._writing or self._backlog or self._current or (self._open and self._open.size))

    def _spooled(self) -> bool:
        segments = (*self._backlog, *([self._current] if self._current else ()))
        return not (self._queue or self._writing) and all(segment.path is not None for segment in segments)

    def close(self, timeout: float, leave_early: bool = False) -> bool:
        """Flushes, then ends the threads. What has no outcome stays in the spool."""
        with self._cond:
            if self._closed:
                return self._idle()
            self._closed = True
        done = self.flush(timeout, leave_early)
        with self._cond:
            self._stopped = True
            self._cond.notify_all()
            queue = list(self._queue)
            self._queue.clear()
        self._store(queue, sync=False)
        self._leave()
        self._reporter.release(everything=True)
        return done

    def _leave(self) -> None:
        with self._files, self._cond:
            segments = [*self._backlog, *([self._current] if self._current else []), *([self._open] if self._open else [])]
            self._backlog.clear()
            if self._open is not None:
                self._open.close()
                self._open = None
            lost = sum(segment.traces for segment in segments if segment.path is None)
            if lost:
                self._counts["waiting"] -= lost
                self._drop(lost, "the recorder is closed, and they are not in the spool")
        try:
            self._spool.leave()
        except OSError as error:
            self._note("spool", f"leave {self._spool.own}: {error}")
        self._tell()

    # The thread that writes.

    def _guarded(self, loop: Callable[[], None]) -> None:
        while not self._stopped:
            try:
                loop()
            except Exception as error:  # a bug must neither end the delivery nor turn the processor hot
                self._reporter.internal(loop.__name__, error)
                time.sleep(1)

    def _write_loop(self) -> None:
        tidied = 0.0
        while not self._stopped:
            if time.monotonic() - tidied >= TIDY_SECONDS:
                tidied = time.monotonic()
                self._tidy()
            with self._cond:
                self._cond.wait_for(lambda: self._queue or self._rotate or self._wake or self._stopped or self._due() == 0, self._due())
                self._wake = False
                items = list(self._queue)
                self._queue.clear()
                self._queued_bytes = 0
                self._writing = True
            try:
                self._store(items, sync=False)
                with self._files, self._cond:
                    rotate = self._rotate and not self._queue
                    if rotate or self._due() == 0:
                        self._close_segment()
                    if rotate:
                        self._rotate = False
            finally:
                with self._cond:
                    self._writing = False
                    self._cond.notify_all()
            self._reporter.release()

    def _due(self) -> float:
        """Returns the seconds until the open segment is to be sent."""
        segment = self._open
        if segment is None or not segment.size:
            return IDLE_SECONDS
        return max(0.0, segment.born + SEGMENT_SECONDS - time.monotonic())

    def _store(self, items: list[bytes], sync: bool) -> None:
        """Writes lines to the spool, a segment at a time."""
        self._append(items, sync)
        self._tell()

    def _append(self, items: list[bytes], sync: bool) -> None:
        with self._files:
            while items:
                if self._open is None:
                    self._open = self._new_segment()
                segment = self._open
                part, size = [], segment.size
                for item in items[: SEGMENT_LINES - len(segment.items or ())]:
                    if part and size + len(item) >= SEGMENT_BYTES:
                        break
                    part.append(self._signed(item))
                    size += len(part[-1]) + 1
                items = items[len(part):]
                segment = self._open = self._write(segment, part, sync)
                with self._cond:
                    if len(segment.items or ()) >= SEGMENT_LINES or segment.size >= SEGMENT_BYTES or items:
                        self._close_segment()

    def _signed(self, line: bytes) -> bytes:
        return line if self._key is None or line.startswith(END) else self._key.attach(line)

    def _new_segment(self) -> Segment:
        try:
            return self._spool.segment()
        except OSError as error:
            self._unwritable(error)
            return Segment(None)

    def _unwritable(self, error: OSError) -> None:
        self._note("spool", f"the spool {self._spool.agent} cannot be written ({error}): "
                   f"up to {MEMORY_BYTES >> 20} MiB of traces wait in memory")

    def _write(self, segment: Segment, part: list[bytes], sync: bool) -> Segment:
        """Adds lines to a segment that there is room in, and returns it. It is another one, in memory, if the file cannot be written."""
        traces, size = sum(not line.startswith(END) for line in part), sum(len(line) + 1 for line in part)
        if not self._room(segment, traces, size):
            return segment
        try:
            segment.append(part, sync)
        except OSError as error:
            self._unwritable(error)
            with self._cond:
                self._close_segment()  # what it has stays in its file
            segment = Segment(None)
            if not self._room(segment, traces, size):
                return segment
            segment.append(part, sync)
        with self._cond:
            self._bytes += size
        segment.traces += traces
        return segment

    def _room(self, segment: Segment, traces: int, size: int) -> bool:
        """Reports whether a segment may have more lines; if not, they are dropped."""
        with self._cond:
            limit, kept = self._spool_bytes, self._bytes
            if segment.path is None and self._spool.agent is not None:
                others = (s for s in (*self._backlog, self._current, segment) if s is not None)
                limit, kept = min(MEMORY_BYTES, limit), sum(s.size for s in others if s.path is None)
            if kept + size <= limit:
                return True
            self._counts["waiting"] -= traces
            self._drop(traces, f"{kept} bytes wait for ingest already, at most {limit} may")
            return False

    def _close_segment(self) -> None:
        """Hands the open segment over. The caller holds both locks."""
        segment, self._open = self._open, None
        if segment is None or not segment.size:
            self._open = segment
            return
        segment.close()
        self._backlog.append(segment)
        self._cond.notify_all()

    def _tidy(self) -> None:
        try:
            self._spool.touch()
            adopted, faults = self._spool.adopt()
        except OSError as error:
            adopted, faults = [], [error]
        for fault in faults:
            self._reporter.error("spool", f"take over the files of earlier processes in {self._spool.agent}: {fault}")
        with self._cond:
            self._backlog.extendleft(reversed(adopted))
            self._bytes += sum(segment.size for segment in adopted)
            self._cond.notify_all()

    # The thread that sends.

    def _send_loop(self) -> None:
        connection, pauses = self._connect(), 0
        while not self._stopped:
            with self._cond:
                self._cond.wait_for(lambda: self._backlog or self._current or self._stopped)
                if self._stopped:
                    break
                self._current = self._current or self._backlog.popleft()
                segment, self._kick = self._current, False
            try:
                self._deliver(connection, segment)
            except Wait as wait:
                pauses += 1
                self._await(wait, pauses)
                continue
            pauses = 0
            with self._cond:
                if not segment.adopted:
                    self._counts["waiting"] -= segment.traces
                self._bytes -= segment.size
                self._current = None
                self._cond.notify_all()
        connection.close()

    def _await(self, wait: Wait, pauses: int) -> None:
        """Pauses after an attempt that failed, and makes what waits survive a loss of power."""
        with self._cond:
            waiting = [s for s in (self._current, *self._backlog) if s is not None]
            traces = self._counts["waiting"]
        self._reporter.error(wait.kind, f"{wait}; {traces} traces wait" + (f" in {self._spool.agent}" if self._spool.agent else " in memory"))
        pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(pauses - 1, 10)) * random.uniform(0.5, 1)
        if wait.after is not None:
            pause = min(LONGEST_REQUEST, max(wait.after, FIRST_PAUSE))
        for segment in waiting:
            try:
                if time.monotonic() - segment.born > 1:
                    segment.sync()
            except OSError:
                pass  # another process took the file over; or reading it will say what is wrong
        with self._cond:
            self._failures += 1
            self._cond.notify_all()
            self._cond.wait_for(lambda: self._stopped or self._kick, pause)

    def _deliver(self, connection: Connection, segment: Segment) -> None:
        """Sends a segment until each of its lines has an outcome; Wait if some have none."""
        try:
            lines = segment.load()
        except FileNotFoundError:
            return  # another process took this one for dead: it sends the file
        except OSError as error:
            raise Wait("spool", f"read {segment.path}: {error}") from error
        while lines:
            if lines[0].startswith(END):
                self._end(connection, lines[0])
                lines = lines[1:]
            else:
                first = next((i for i, line in enumerate(lines) if line.startswith(END)), len(lines))
                count = min(first, self._most_lines)
                again, wait = self._publish(connection, lines[:count])
                lines = again + lines[count:]
                segment.items = lines
                if wait is not None:
                    raise wait
            segment.items = lines
        try:
            segment.remove()
        except OSError as error:
            self._reporter.error("spool", f"remove a delivered file: {error}; a later process sends it again, which is harmless")

    def _publish(self, connection: Connection, lines: list[bytes]) -> tuple[list[bytes], Optional[Wait]]:
        """Sends one request. It returns the lines without an outcome, and why they have none."""
        try:
            answer = connection.request("POST", "/v1/traces", "application/x-ndjson", b"".join(line + b"\n" for line in lines))
        except (OSError, http.client.HTTPException) as error:
            return lines, Wait("unreachable", f"{self._url} cannot be reached: {error or type(error).__name__}")
        outcomes: dict[int, dict[str, Any]] = {}
        for text in answer.body.splitlines():
            try:
                told = json.loads(text)
                outcomes[int(told["line"])] = told
            except (ValueError, KeyError, TypeError):
                continue
        if not outcomes:
            word, message, _ = answer.problem()
            if answer.code == 413:
                if len(lines) > 1:
                    self._most_lines = max(1, len(lines) // 2)
                    return lines, None
                self._count("refused")
                self._reporter.error("refused", f"ingest, or a proxy before it, takes no line of {len(lines[0])} bytes: {message}")
                return [], None
            kind = "unreachable" if answer.code >= 500 or answer.code in (408, 429) else "request"
            return lines, Wait(kind, f"{self._url}: {message} (HTTP {answer.code}{' ' + word if word else ''})", answer.retry_after)
        again = [line for i, line in enumerate(lines, 1) if not self._outcome(outcomes.get(i, {}))]
        reason = next((f.message for o in outcomes.values() for f in faults_of(o.get("faults")) if o.get("status") == "retry"), "asks to wait")
        return again, Wait("unreachable", f"{self._url}: {reason}", answer.retry_after) if again else None

    def _outcome(self, told: dict[str, Any]) -> bool:
        """Counts and reports the outcome of a line; reports whether it is final."""
        status, trace_id = told.get("status"), str(told.get("trace_id", ""))
        if status not in ("accepted", "duplicate", "refused", "forbidden"):
            return False
        self._count(status)
        for warning in told.get("warnings") or ():
            self._reporter.warning(str(warning.get("code")), f"{warning.get('pointer')} {warning.get('message')}".strip(), trace_id)
        if status in ("refused", "forbidden"):
            self._reporter.error(status, f"ingest answered {status}: the trace is not stored, and kept as a dead letter",
                                 trace_id, faults_of(told.get("faults")))
        return True

    def _count(self, status: str) -> None:
        with self._cond:
            self._counts[status] += 1

    def _end(self, connection: Connection, line: bytes) -> None:
        """Requests the end of a session. One that ingest refuses does not hold up the traces."""
        try:
            body = json.dumps(json.loads(line)["end_session"]).encode()
            answer = connection.request("POST", "/v1/sessions/end", "application/json", body)
        except (OSError, http.client.HTTPException) as error:
            raise Wait("unreachable", f"{self._url} cannot be reached: {error or type(error).__name__}") from error
        except (ValueError, KeyError) as error:
            self._reporter.error("spool", f"a damaged line in the spool: {error}")
            return
        if answer.code < 300:
            return
        word, message, faults = answer.problem()
        if answer.code >= 500 or answer.code in (401, 408, 429):
            raise Wait("request" if answer.code == 401 else "unreachable", f"{self._url}: {message} (HTTP {answer.code} {word})", answer.retry_after)
        self._reporter.error("request", f"end a session: {message} (HTTP {answer.code} {word}); it ends when it is idle", faults=faults)
