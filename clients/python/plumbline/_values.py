"""JSON values of whatever an agent has, and their canonical form (JCS, RFC 8785).

A trace is written in this form from the start, so what is signed is what is sent.
"""
from __future__ import annotations

import base64
import dataclasses
import datetime
import enum
import hashlib
import math
from collections.abc import Mapping, Set
from decimal import Decimal
from json.encoder import encode_basestring as quote
from typing import Any, Callable

# None, bool, int, float, str, or a list or dict of these. A checker of types cannot follow such a definition.
Json = Any

MAX_LEVELS = 32  # of a value that only its publisher interprets
MAX_VALUE_BYTES = 128 << 10  # of such a value as JSON

EXACT = 1 << 53  # integers up to here are exact in a 64-bit float


class TooDeep(ValueError):
    """A value is nested deeper than MAX_LEVELS, or contains itself."""


def plain(value: Any, levels: int = MAX_LEVELS) -> Json:
    """Returns value as JSON. What JSON cannot hold becomes a text, and costs nothing else."""
    if value is None or value is True or value is False:
        return value
    if isinstance(value, enum.Enum):
        return plain(value.value, levels)
    if isinstance(value, str):
        return text(value)
    if isinstance(value, int):
        return int(value) if exact(value) else digits_of(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(float(value))
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        return time_text(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(bytes(value)).decode()
    if levels == 0:
        raise TooDeep(f"nested deeper than {MAX_LEVELS} levels")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    elif hasattr(value, "_asdict") and isinstance(value, tuple):
        value = getattr(value, "_asdict")()
    elif callable(getattr(type(value), "model_dump", None)):
        value = getattr(value, "model_dump")()
    if isinstance(value, Mapping):
        return {text(str(name)): plain(member, levels - 1) for name, member in list(value.items())}
    if isinstance(value, (list, tuple)):
        return [plain(member, levels - 1) for member in list(value)]
    if isinstance(value, Set):
        return sorted((plain(member, levels - 1) for member in list(value)), key=canonical)
    found = number_of(value)
    return text(str(value)) if found is None else plain(found, levels)


def number_of(value: Any) -> Any:
    """Returns a number of a library as Python's own: a Decimal that a float holds exactly, a scalar of NumPy. Else None."""
    if isinstance(value, Decimal):
        return float(value) if value.is_finite() and Decimal(repr(float(value))) == value else None
    if getattr(value, "shape", None) == () and callable(getattr(value, "item", None)):
        found = value.item()
        return found if isinstance(found, (bool, int, float)) else None
    return None


def bounded(value: Any, left_out: Callable[[], None], most: int = MAX_VALUE_BYTES) -> Json:
    """Returns value as JSON, or what stands for it if that has more than most bytes or fails. Then it calls left_out."""
    try:
        result = plain(value)
        if isinstance(result, (str, list, dict)):
            form = canonical(result).encode()
            if len(form) > most:
                left_out()
                return {"left_out": {"bytes": len(form), "sha256": hashlib.sha256(form).hexdigest()}}
        return result
    except (TooDeep, RecursionError):
        left_out()
        return {"left_out": {"levels": MAX_LEVELS}}
    except Exception as error:  # of the value's own code, such as __str__
        left_out()
        return {"left_out": {"error": type(error).__name__}}


def members(value: Any, left_out: Callable[[], None], most: int = MAX_VALUE_BYTES) -> Json:
    """Is bounded for each member of an object, and for anything else."""
    if isinstance(value, Mapping):
        return {text(str(name)): bounded(member, left_out, most) for name, member in list(value.items())}
    return bounded(value, left_out, most)


def text(value: str) -> str:
    """Returns value without half surrogate pairs, which UTF-8 cannot hold."""
    value = str.__str__(value)
    if value.isascii():
        return value
    try:
        value.encode()
        return value
    except UnicodeEncodeError:
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def time_text(value: Any) -> str:
    """Returns a time as RFC 3339 text. One without a zone is in the zone of this machine."""
    if isinstance(value, datetime.datetime):
        return value.astimezone(datetime.timezone.utc).isoformat().replace("+00:00", "Z")
    return str(value.isoformat())


def exact(value: int) -> bool:
    """Reports whether a reader of 64-bit floats reads the same digits."""
    if -EXACT <= value <= EXACT:
        return True
    try:
        return digits_of(value).strip("-0") == repr(float(value)).partition("e")[0].replace(".", "").strip("-0")
    except OverflowError:
        return False


def digits_of(value: int) -> str:
    return str(int(value)) if value.bit_length() < 8192 else hex(value)  # Python limits the digits of str


def canonical(value: Json) -> str:
    """Returns the JCS form of a result of plain."""
    parts: list[str] = []
    write(value, parts.append)
    return "".join(parts)


def write(value: Json, put: Callable[[str], None]) -> None:
    if value is None:
        put("null")
    elif value is True:
        put("true")
    elif value is False:
        put("false")
    elif isinstance(value, str):
        put(quote(value))
    elif isinstance(value, int):
        put(str(value) if -EXACT <= value <= EXACT else number(float(value)))
    elif isinstance(value, float):
        put(number(value))
    elif isinstance(value, list):
        separator = "["
        for member in value:
            put(separator)
            write(member, put)
            separator = ","
        put("]" if value else "[]")
    else:
        separator = "{"
        for name in sorted(value, key=order):
            put(separator + quote(name) + ":")
            write(value[name], put)
            separator = ","
        put("}" if value else "{}")


def order(name: str) -> bytes:
    """Names are in the order of their UTF-16 code units."""
    return name.encode("utf-16-be")


def number(value: float) -> str:
    """Returns a finite float as ECMAScript writes it."""
    if value == 0:
        return "0"
    mantissa, _, exponent = repr(value).partition("e")
    sign, mantissa = ("-", mantissa[1:]) if mantissa[0] == "-" else ("", mantissa)
    whole, _, fraction = mantissa.partition(".")
    stripped = (whole + fraction).lstrip("0")
    point = len(whole) + int(exponent or 0) - (len(whole + fraction) - len(stripped))  # value = 0.digits * 10**point
    digits = stripped.rstrip("0")
    if len(digits) <= point <= 21:
        return sign + digits + "0" * (point - len(digits))
    if 0 < point <= 21:
        return sign + digits[:point] + "." + digits[point:]
    if -6 < point <= 0:
        return sign + "0." + "0" * -point + digits
    first, rest = digits[0], digits[1:]
    return f"{sign}{first}{'.' + rest if rest else ''}e{'+' if point > 0 else '-'}{abs(point - 1)}"
