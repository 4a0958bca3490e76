"""A session of an agent: it numbers the traces, and wraps tools so that each call is a trace."""
from __future__ import annotations

import contextvars
import functools
import inspect
import threading
import time
import uuid
from datetime import datetime, timezone
from types import TracebackType
from typing import TYPE_CHECKING, Any, Awaitable, Callable, NamedTuple, NoReturn, Optional, TypeVar, Union, overload

from ._trace import Invalid
from ._values import members

if TYPE_CHECKING:
    from ._recorder import Recorder

F = TypeVar("F", bound=Callable[..., Any])

current: contextvars.ContextVar[Optional[Session]] = contextvars.ContextVar("plumbline_session", default=None)


class Place(NamedTuple):
    """When a decision was made: its number in the session, and its time."""

    number: Optional[int]
    timestamp: str


# Of all counters: a lock that another thread holds stays held in a process that is forked, so that process gets a new
# one. A signal handler may interrupt the holder and record, too.
_lock = threading.RLock()


def after_fork() -> None:
    global _lock
    _lock = threading.RLock()


class Counter:
    """Gives the places of a session in turn. Everybody who records in the session shares it."""

    def __init__(self, first: Optional[int]) -> None:
        self.next, self.last = first, datetime.min.replace(tzinfo=timezone.utc)

    def take(self) -> Place:
        with _lock:
            number = self.next
            if number is not None:
                self.next = number + 1
            now = self.last = max(self.last, datetime.now(timezone.utc))
        return Place(number, now.strftime("%Y-%m-%dT%H:%M:%S.%fZ"))


class Session:
    """Recorder.session makes it. All methods may be called from any thread."""

    def __init__(self, recorder: Recorder, session_id: Optional[str], counter: Counter, end: bool) -> None:
        self.session_id = session_id
        self._recorder, self._counter, self._ends = recorder, counter, end
        self._tokens: list[contextvars.Token[Optional[Session]]] = []

    @property
    def next_number(self) -> Optional[int]:
        """The number of the next trace: what first_number of the agent's next session may be."""
        return self._counter.next

    def record(
        self,
        action: Optional[str] = None,
        *more: NoReturn,
        type: str = "execute",
        category: str = "bounded",
        target: Any = None,
        parameters: Any = None,
        alternatives: Any = None,
        selected: Optional[str] = None,
        reasoning: str = "",
        values: Any = (),
        confidence: Optional[float] = None,
        escalation: Any = None,
        execution: Any = None,
        turn: Optional[int] = None,
        prior: Any = None,
        environment: Any = None,
        metadata: Any = None,
        timestamp: Union[str, datetime, None] = None,
        trace_id: Optional[str] = None,
        **unknown: NoReturn,
    ) -> str:
        """Records a decision and returns its trace_id at once. It never raises: on_error gets what is wrong."""
        if more or unknown:
            self._recorder._ignored("record", [*unknown, *(f"number {i}" for i in range(2, 2 + len(more)))])
        return self._record(self._counter.take(), dict(
            action=action, type=type, category=category, target=target, parameters=parameters, alternatives=alternatives,
            selected=selected, reasoning=reasoning, values=values, confidence=confidence, escalation=escalation, execution=execution,
            turn=turn, prior=prior, environment=environment, metadata=metadata), timestamp, trace_id)

    def _record(self, place: Place, fields: dict[str, Any], timestamp: Any = None, trace_id: Any = None) -> str:
        trace_id = str(uuid.uuid4()) if trace_id is None else trace_id
        self._recorder._record(trace_id, self.session_id, place.number, place.timestamp if timestamp is None else timestamp, fields)
        return text_of(trace_id)

    @overload
    def tool(self, function: F) -> F: ...

    @overload
    def tool(self, *, name: Optional[str] = None, **decision: Any) -> Callable[[F], F]: ...

    def tool(self, function: Any = None, *, name: Optional[str] = None, **decision: Any) -> Any:
        """Wraps a function, synchronous or not: each call is a trace. decision has arguments of record."""
        return wrap(self._recorder, lambda: self, function, name, decision)

    def end(self) -> None:
        """Requests the end of the session, after the traces recorded before."""
        self._recorder._end(self)

    def __enter__(self) -> Session:
        self._tokens.append(current.set(self))
        return self

    def __exit__(self, kind: Optional[type], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        token = self._tokens.pop()
        try:
            current.reset(token)
        except ValueError:
            pass  # left in another context than it was entered in, as in an asynchronous generator
        if self._ends:
            self.end()

    async def __aenter__(self) -> Session:
        return self.__enter__()

    async def __aexit__(self, kind: Optional[type], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        self.__exit__(kind, error, trace)


DECISION = frozenset(("type", "category", "target", "alternatives", "selected", "reasoning", "values", "confidence", "escalation"))


def wrap(recorder: Recorder, session: Callable[[], Session], function: Optional[Callable[..., Any]], name: Optional[str],
         decision: dict[str, Any]) -> Any:
    """Returns the wrapped function, or the decorator if there is no function yet."""
    if function is None:
        return lambda f: wrap(recorder, session, f, name, decision)
    recorder._ignored("tool", [name for name in decision if name not in DECISION])
    decision = {name: value for name, value in decision.items() if name in DECISION}
    of = _Tool(function, name or getattr(function, "__name__", "tool"), decision)

    if inspect.iscoroutinefunction(function):
        @functools.wraps(function)
        async def asynchronous(*args: Any, **kwargs: Any) -> Any:
            call = _Call(of, session(), args, kwargs)
            return await call.finish_later(function(*args, **kwargs))
        return asynchronous

    @functools.wraps(function)
    def synchronous(*args: Any, **kwargs: Any) -> Any:
        call = _Call(of, session(), args, kwargs)
        try:
            result = function(*args, **kwargs)
        except BaseException as error:
            call.end(error=error)
            raise
        if inspect.iscoroutine(result):
            return call.finish_later(result)
        if callable(getattr(result, "add_done_callback", None)):
            result.add_done_callback(call.done)
        else:
            call.end(outputs=None if inspect.isawaitable(result) else result)
        return result
    return synchronous


class _Tool:
    def __init__(self, function: Callable[..., Any], name: str, decision: dict[str, Any]) -> None:
        self.name, self.decision = name, decision
        try:
            self.signature: Optional[inspect.Signature] = inspect.signature(function)
        except (TypeError, ValueError):
            self.signature = None

    def parameters(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Returns the arguments of a call by name, without self and cls."""
        if self.signature is None:
            return {**({"args": args} if args else {}), **kwargs}
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError:  # the call itself will raise it
            return {"args": args, **kwargs}
        bound.apply_defaults()
        found: dict[str, Any] = {}
        for i, (name, value) in enumerate(bound.arguments.items()):
            if self.signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
                found.update(value)
            elif not (i == 0 and name in ("self", "cls")):
                found[name] = value
        return found


class _Call:
    """One call of a tool. None of its methods raises what the tool did not."""

    def __init__(self, tool: _Tool, session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.tool, self.session, self.place = tool, session, session._counter.take()
        self.fields: dict[str, Any] = {}
        try:
            # A copy, because the function may change its arguments.
            self.parameters = members(tool.parameters(args, kwargs), session._recorder._left_out)
            self.fields = {
                name: value(self.parameters) if callable(value) else value for name, value in tool.decision.items()
            }
        except Exception as error:
            self.parameters = {}
            session._recorder._reporter.error("invalid", f"tool {tool.name}: {type(error).__name__}: {error}")
        self.began = time.perf_counter()

    def end(self, outputs: Any = None, error: Optional[BaseException] = None) -> None:
        milliseconds = round((time.perf_counter() - self.began) * 1000, 3)
        execution: dict[str, Any] = {"tool_name": self.tool.name, "inputs": self.parameters}
        if error is None:
            execution["outputs"] = outputs
        else:
            execution["error"] = f"{type(error).__name__}: {text_of(error)}"
        self.session._record(self.place, dict(
            self.fields, action=self.tool.name, parameters=self.parameters, execution=execution, metadata={"duration_ms": milliseconds}))

    def done(self, future: Any) -> None:
        """Is end for a future or task, which the caller has already."""
        try:
            error = future.exception()
        except BaseException as cancelled:
            error = cancelled
        self.end(outputs=None if error else future.result(), error=error)

    async def finish_later(self, awaitable: Awaitable[Any]) -> Any:
        try:
            result = await awaitable
        except BaseException as error:
            self.end(error=error)
            raise
        self.end(outputs=result)
        return result


def text_of(value: Any) -> str:
    try:
        return str(value)
    except Exception:
        return "(its text cannot be read)"


__all__ = ["Invalid", "Session", "current", "wrap"]
