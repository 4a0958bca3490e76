"""Builds AP-Traces (AAP section 5), and finds what ingest would refuse, in ingest's words."""
from __future__ import annotations

import re
import sys
from datetime import datetime, timedelta, timezone
from typing import Any, Callable, Optional

from ._report import Fault
from ._values import MAX_VALUE_BYTES, Json, bounded, members, number, plain, text

MAX_TRACE_BYTES = 768 << 10
MAX_ID_BYTES = 512
MAX_ALTERNATIVES = 256
MAX_ERROR_BYTES = 4 << 10  # of execution.error

TYPES = ("recommend", "execute", "escalate", "deny")
CATEGORIES = ("bounded", "escalation_trigger", "forbidden")
STATUSES = ("pending", "approved", "denied", "timeout")


class Invalid(Exception):
    """The arguments make no trace. Holds every fault."""

    def __init__(self, faults: list[Fault]) -> None:
        super().__init__("this is no valid trace and was not sent")
        self.faults = faults


def build(
    head: dict[str, Json],
    session_id: Optional[str],
    sequence_number: Optional[int],
    left_out: Callable[[], None],
    most: int = MAX_VALUE_BYTES,
    *,
    action: Any = None,
    type: Any = "execute",
    category: Any = "bounded",
    target: Any = None,
    parameters: Any = None,
    alternatives: Any = None,
    selected: Any = None,
    reasoning: Any = "",
    values: Any = (),
    confidence: Any = None,
    escalation: Any = None,
    execution: Any = None,
    turn: Any = None,
    prior: Any = None,
    environment: Any = None,
    metadata: Any = None,
) -> dict[str, Json]:
    """Returns the trace of the arguments of Session.record. head has the ids and the timestamp, a value has at most most bytes."""
    options = alternatives_of(action if alternatives is None else alternatives, single=alternatives is None)
    if selected is None and isinstance(options, list) and len(options) == 1 and isinstance(options[0], dict):
        selected = options[0].get("option_id")
    trace = dict(head)
    trace["action"] = given(
        type=plain(type), name=plain(action), category=plain(category), target=plain(target),
        parameters=members(parameters, left_out, most))
    trace["decision"] = given(
        alternatives_considered=options, selected=plain(selected), selection_reasoning=plain(reasoning),
        values_applied=plain(list(values) if isinstance(values, (tuple, set, frozenset)) else values), confidence=plain(confidence))
    if escalation is not None:
        block = bounded(escalation, left_out)
        trace["escalation"] = {"evaluated": True, **block} if isinstance(block, dict) else block
    notes = members(metadata, left_out, most) if metadata is not None else {}
    if isinstance(notes, dict):
        notes = {**notes, **given(sequence_number=sequence_number, execution=execution_of(execution, left_out, most))}
    context = given(
        session_id=plain(session_id), conversation_turn=plain(turn), prior_trace_ids=plain(prior),
        environment=members(environment, left_out, most) if environment is not None else None, metadata=notes or None)
    if context:
        trace["context"] = context
    return trace


def given(**of: Json) -> dict[str, Json]:
    """Returns the members that are not None: absent in a trace."""
    return {name: value for name, value in of.items() if value is not None}


def alternatives_of(value: Any, single: bool) -> Json:
    """Returns the alternatives; a text is an alternative's id and description."""
    if single:
        value = [value] if isinstance(value, str) and value else None
    if isinstance(value, (str, bytes)) or not hasattr(value, "__iter__") or isinstance(value, dict):
        return plain(value)
    return [{"option_id": text(a), "description": text(a)} if isinstance(a, str) else plain(a) for a in value]


def execution_of(value: Any, left_out: Callable[[], None], most: int) -> Json:
    if not isinstance(value, dict):
        return plain(value)
    block = {
        text(str(name)): members(member, left_out, most) if name == "inputs" else bounded(member, left_out, most)
        for name, member in value.items() if name != "error"
    }
    if value.get("error") is not None:
        block["error"] = clip(bounded(value["error"], left_out, sys.maxsize), MAX_ERROR_BYTES)
    return block


def clip(value: Json, most: int) -> Json:
    """Returns a text of at most most bytes: ingest reads no other error than a text."""
    data = value.encode() if isinstance(value, str) else b""
    return value if len(data) <= most else data[:most - 3].decode(errors="ignore") + "…"


def check(trace: dict[str, Json]) -> list[Fault]:
    """Returns what ingest would refuse about a result of build."""
    c = _Checker()
    for name in ("trace_id", "agent_id", "card_id"):
        c.required(trace, "", name, c.identifier)
    c.required(trace, "", "timestamp", c.time)
    c.action(trace["action"])
    c.decision(trace["decision"])
    c.optional(trace, "", "escalation", c.escalation)
    c.optional(trace, "", "context", c.context)
    return c.faults


class _Checker:
    """Collects faults. Each method takes a value and its JSON pointer."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []

    def fault(self, at: str, message: str) -> None:
        self.faults.append(Fault(at, message))

    def of(self, kind: type, value: Json, at: str, want: str) -> bool:
        if kind is bool if isinstance(value, bool) else isinstance(value, kind):
            return True
        self.fault(at, f"want {want}, found {kind_of(value)}")
        return False

    def required(self, of: dict[str, Json], at: str, name: str, check: Callable[[Any, str], Any]) -> None:
        if name in of:
            check(of[name], f"{at}/{name}")
        else:
            self.fault(f"{at}/{name}", "is missing (required)")

    def optional(self, of: dict[str, Json], at: str, name: str, check: Callable[[Any, str], Any]) -> None:
        if of.get(name) is not None:
            check(of[name], f"{at}/{name}")

    def present(self, of: dict[str, Json], at: str, name: str, check: Callable[[Any, str], Any]) -> None:
        """Is optional, except that null is not absent."""
        if name in of:
            check(of[name], f"{at}/{name}")

    def text(self, value: Json, at: str) -> bool:
        return self.of(str, value, at, "a string")

    def texts(self, value: Json, at: str) -> None:
        if self.of(list, value, at, "an array of strings"):
            for i, member in enumerate(value):
                self.text(member, f"{at}/{i}")

    def object(self, value: Json, at: str) -> bool:
        return self.of(dict, value, at, "an object")

    def boolean(self, value: Json, at: str) -> None:
        self.of(bool, value, at, "a boolean")

    def identifier(self, value: Json, at: str) -> None:
        if not self.text(value, at):
            return
        size = len(value.encode())
        if size == 0:
            self.fault(at, "must not be empty")
        elif size > MAX_ID_BYTES:
            self.fault(at, f"{size} bytes, at most {MAX_ID_BYTES} are allowed")

    def one_of(self, allowed: tuple[str, ...]) -> Callable[[Json, str], None]:
        def check(value: Json, at: str) -> None:
            self.text(value, at)
            if value not in allowed:
                self.fault(at, f"{quoted(value if isinstance(value, str) else '')} is none of {', '.join(allowed)}")
        return check

    def fraction(self, value: Json, at: str) -> None:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            self.fault(at, f"want a number, found {kind_of(value)}")
        elif not 0 <= value <= 1:
            self.fault(at, f"{number(float(value))} is outside 0..1")

    def natural(self, value: Json, at: str) -> None:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            self.fault(at, f"want an integer, found {kind_of(value)}")
        elif value < 0 or value >= 1 << 63 or not float(value).is_integer():
            self.fault(at, "want an integer of at least 0")

    def time(self, value: Json, at: str) -> None:
        if not self.text(value, at):
            return
        moment = parse_time(value)
        if moment is None:
            self.fault(at, f"{quoted(value)} is not an RFC 3339 time with a zone, such as 2026-01-31T12:30:00Z")
        elif not 1970 <= moment.year <= 2105:
            self.fault(at, f"{moment.strftime('%Y-%m-%dT%H:%M:%SZ')} is outside 1970..2105")

    def action(self, value: dict[str, Json]) -> None:
        at = "/action"
        self.required(value, at, "type", self.one_of(TYPES))
        self.required(value, at, "name", self.identifier)
        self.required(value, at, "category", self.one_of(CATEGORIES))
        self.optional(value, at, "target", self.target)
        self.optional(value, at, "parameters", self.object)

    def target(self, value: Json, at: str) -> None:
        if self.object(value, at):
            self.present(value, at, "type", self.text)
            self.present(value, at, "identifier", self.text)

    def decision(self, value: dict[str, Json]) -> None:
        at, options = "/decision", value.get("alternatives_considered")
        self.required(value, at, "alternatives_considered", self.alternatives)
        self.required(value, at, "selected", self.identifier)
        self.required(value, at, "selection_reasoning", self.text)
        self.required(value, at, "values_applied", self.texts)
        self.optional(value, at, "confidence", self.fraction)
        selected = value.get("selected")
        if isinstance(selected, str) and selected and isinstance(options, list) and options:
            if selected not in [o.get("option_id") for o in options[:MAX_ALTERNATIVES] if isinstance(o, dict)]:
                self.fault("/decision/selected", f"no alternative has the option_id {quoted(selected)}")

    def alternatives(self, value: Json, at: str) -> None:
        if not self.of(list, value, at, "an array of alternatives"):
            return
        if not value:
            self.fault(at, "at least one alternative is required")
        seen: set[str] = set()
        for i, option in enumerate(value):
            if i >= MAX_ALTERNATIVES:
                self.fault(f"{at}/{i}", f"more than {MAX_ALTERNATIVES} alternatives")
            else:
                self.alternative(option, f"{at}/{i}", seen)

    def alternative(self, value: Json, at: str, seen: set[str]) -> None:
        if not self.object(value, at):
            return
        self.required(value, at, "option_id", self.identifier)
        option_id = value.get("option_id")
        if isinstance(option_id, str) and option_id:
            if option_id in seen:
                self.fault(f"{at}/option_id", f"{quoted(option_id)} is the option_id of an earlier alternative too")
            seen.add(option_id)
        self.required(value, at, "description", self.text)
        self.optional(value, at, "score", self.fraction)
        self.optional(value, at, "scoring_factors", self.object)
        self.optional(value, at, "flags", self.texts)

    def escalation(self, value: Json, at: str) -> None:
        if not self.object(value, at):
            return
        self.present(value, at, "evaluated", self.boolean)
        self.optional(value, at, "triggers_checked", self.triggers)
        self.present(value, at, "required", self.boolean)
        self.optional(value, at, "reason", self.text)
        self.optional(value, at, "escalation_id", self.text)
        self.optional(value, at, "escalation_status", self.one_of(STATUSES))
        self.optional(value, at, "principal_response", self.response)

    def triggers(self, value: Json, at: str) -> None:
        if not self.of(list, value, at, "an array of triggers"):
            return
        for i, trigger in enumerate(value):
            if self.object(trigger, f"{at}/{i}"):
                self.present(trigger, f"{at}/{i}", "trigger", self.text)
                self.present(trigger, f"{at}/{i}", "matched", self.boolean)

    def response(self, value: Json, at: str) -> None:
        if not self.object(value, at):
            return
        self.optional(value, at, "decision", self.text)
        self.optional(value, at, "timestamp", self.time)
        self.optional(value, at, "conditions", self.texts)

    def context(self, value: dict[str, Json], at: str) -> None:
        self.optional(value, at, "session_id", self.session_id)
        self.optional(value, at, "conversation_turn", self.natural)
        self.optional(value, at, "prior_trace_ids", self.texts)
        self.optional(value, at, "environment", self.object)
        self.optional(value, at, "metadata", self.object)

    def session_id(self, value: Json, at: str) -> None:
        self.identifier(value, at)
        if isinstance(value, str) and value.startswith("~utc-"):
            self.fault(at, 'session ids beginning with "~utc-" are reserved')


def kind_of(value: Json) -> str:
    """Returns the name of a kind of JSON value, as faults write it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, (int, float)):
        return "a number"
    return {str: "a string", list: "an array"}.get(value.__class__, "an object")


def quoted(value: str) -> str:
    """Returns at most 64 bytes of a text, in quotation marks."""
    data = value.encode()
    if len(data) > 64:
        value = data[:64].decode(errors="ignore") + "…"
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    return f'"{escaped}"'


TIME = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt]([01]\d|2[0-3]):([0-5]\d):([0-5]\d|60)(\.\d+)?(?:[Zz]|([+-])([01]\d|2[0-3]):([0-5]\d))", re.ASCII)


def parse_time(value: str) -> Optional[datetime]:
    """Returns an RFC 3339 time in UTC, in whole seconds, or None. Second 60 is the last of a day."""
    found = TIME.fullmatch(value)
    if not found:
        return None
    year, month, day, hour, minute, second = (int(found[i]) for i in range(1, 7))
    leap = second == 60
    try:
        moment = datetime(year, month, day, hour, minute, 59 if leap else second, tzinfo=timezone.utc)
        if found[8]:
            offset = timedelta(hours=int(found[9]), minutes=int(found[10]))
            moment += -offset if found[8] == "+" else offset
        if leap:
            if (moment.hour, moment.minute) != (23, 59):
                return None
            moment += timedelta(seconds=1)
    except (ValueError, OverflowError):
        return None
    return moment
