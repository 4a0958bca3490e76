#!/usr/bin/env python3
"""Verifies the files of an integrity ledger (message-integrity RFC, section 3).

    python3 verify_ledger.py FILE [FILE …]

Several files are checked as a chain, in the order given. Needs Python 3.6 or newer
and nothing else, no network. Prints a line for each file; exits 0 when every entry
and every link holds, else 1, and names the first number that does not.
"""
import hashlib
import json
import sys

TYPES = ("BOOT", "CLAIM", "VERIFY", "RETRACT", "META", "GENESIS")
MAX_EXACT = 2**53 - 1
MAX_FLOAT = sys.float_info.max
MAX_DATA = 1 << 20
MAX_LINE = MAX_DATA + 1024  # a line is shorter
MAX_DEPTH = 64
NOT_PROVEN = """Not proven:
  That the whole file is genuine: whoever can write all of it can write another one. Compare the last hash with one that you had from elsewhere.
  That nothing is missing at the end: a file that was cut short verifies as far as it goes.
  That what the entries say is true."""


class Fault(Exception):
    pass


def unique(pairs):
    members = dict(pairs)
    if len(members) != len(pairs):
        raise Fault("form: a name occurs twice in one object")
    return members


def as_written(text, number):
    """A number whose text is that of the canonical form: the hash covers no other."""
    if number_text(number) != text:
        raise Fault("form: the number %s is written %s in the canonical form, which is what the hash covers" % (text[:80], number_text(number)))
    return number


def whole(text):
    if len(text) > 400:
        raise Fault("form: %s is beyond a float64" % text[:80])
    return as_written(text, int(text))


def real(text):
    return as_written(text, float(text))


def no_number(text):
    raise Fault("form: %s is no JSON" % text)


def read(text):
    try:
        return json.loads(text, object_pairs_hook=unique, parse_int=whole, parse_float=real, parse_constant=no_number)
    except (ValueError, RecursionError) as e:
        raise Fault("form: %s" % e)


def number_text(number):
    """A number as ECMAScript writes it (RFC 8785, section 3.2.2.3)."""
    if number == 0:
        return "0"
    sign, number = ("-", -number) if number < 0 else ("", number)
    if number > MAX_FLOAT:
        raise Fault("form: a number is beyond a float64")
    mantissa, _, exponent = ("%r" % float(number)).partition("e")
    before, _, after = mantissa.partition(".")
    point = len(before) + int(exponent or 0)
    digits = before + after
    point -= len(digits) - len(digits.lstrip("0"))
    digits = digits.strip("0")
    if 0 < point <= 21:
        digits = digits.ljust(point, "0")
        return sign + digits[:point] + ("." + digits[point:] if digits[point:] else "")
    if -6 < point <= 0:
        return sign + "0." + "0" * -point + digits
    tail = "." + digits[1:] if digits[1:] else ""
    return "%s%s%se%+d" % (sign, digits[0], tail, point - 1)


def canonical(value):
    """The canonical form (RFC 8785) of a JSON value."""
    if value is True or value is False or value is None:
        return json.dumps(value)
    if isinstance(value, (int, float)):
        return number_text(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list):
        return "[" + ",".join(canonical(v) for v in value) + "]"
    names = sorted(value, key=lambda name: name.encode("utf-16-be", "surrogatepass"))
    return "{" + ",".join(canonical(name) + ":" + canonical(value[name]) for name in names) + "}"


def deeper(value, most):
    """Tells whether a JSON value is nested deeper than that."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return inner is not None and (most == 0 or any(deeper(v, most - 1) for v in inner))


def is_hash(text):
    return isinstance(text, str) and len(text) == 64 and all(c in "0123456789abcdef" for c in text)


def parse(line):
    entry = read(line)
    if not isinstance(entry, dict) or sorted(entry) != ["data", "hash", "seq", "type"]:
        raise Fault("form: not an object of seq, type, data and hash")
    if type(entry["seq"]) is not int or not 0 <= entry["seq"] <= MAX_EXACT:
        raise Fault("form: seq is not a whole number from 0")
    if entry["type"] not in TYPES:
        raise Fault("form: type is none of " + ", ".join(TYPES))
    if not isinstance(entry["data"], dict) or not is_hash(entry["hash"]):
        raise Fault("form: data is no object, or hash is not 64 hexadecimal digits")
    if deeper(entry["data"], MAX_DEPTH):
        raise Fault("form: data is nested deeper than %d" % MAX_DEPTH)
    try:
        entry["canonical"] = canonical(entry["data"]).encode("utf-8")
    except UnicodeEncodeError:
        raise Fault("form: half a surrogate pair")
    if len(entry["canonical"]) > MAX_DATA:
        raise Fault("form: data is longer than %d bytes" % MAX_DATA)
    return entry


def check(number, previous, line):
    """Checks one line, the entry's number first; returns the entry."""
    entry = parse(line)
    if entry["seq"] != number:
        raise Fault("gap: expected seq %d, found %d" % (number, entry["seq"]))
    head = "|".join((previous, str(number), entry["type"], ""))
    found = hashlib.sha256(head.encode("utf-8") + entry["canonical"]).hexdigest()
    if found != entry["hash"]:
        raise Fault("hash: is %s, recomputed %s" % (entry["hash"], found))
    if (entry["type"] == "GENESIS") != (number == 0):
        raise Fault("genesis: entry 0 is GENESIS, and no other")
    return entry


def verify(path, before):
    """Checks a file that continues the hash before, or any; returns its last hash, its length and what it continues from."""
    number, previous, origin = 0, "0" * 64, None
    with open(path, "rb") as lines:
        for line in iter(lambda: lines.readline(MAX_LINE + 1), b""):  # a longer line is not read into memory
            try:
                if len(line.rstrip(b"\n")) >= MAX_LINE:
                    raise Fault("form: the line is too long")
                entry = check(number, previous, line.rstrip(b"\n").decode("utf-8"))
                if number == 0:
                    origin = check_continuation(entry["data"], before)
            except UnicodeDecodeError:
                raise Fault("seq %d (line %d): form: not UTF-8" % (number, number + 1))
            except Fault as e:
                raise Fault("seq %d (line %d): %s" % (number, number + 1, e))
            number, previous = number + 1, entry["hash"]
    if number == 0:
        raise Fault("seq 0 (line 1): form: no entry at all")
    return previous, number, origin


def check_continuation(data, before):
    origin = data.get("continues_from")
    if "continues_from" in data and not is_hash(origin):
        raise Fault("continuation: continues_from is not the hash of an entry")
    if before is not None and origin != before:
        raise Fault("continuation: the file before ends with %s, this one continues from %s" % (before, origin or "nothing"))
    return origin


def main(paths):
    if not paths:
        print(__doc__.strip())
        return 1
    before = None
    for path in paths:
        try:
            last, entries, origin = verify(path, before)
        except (OSError, Fault) as e:
            print("FAIL %s: %s" % (path, e))
            return 1
        print("PASS %s: %d entries, last hash %s" % (path, entries, last))
        if origin and before is None:
            print("SKIP %s: it continues from %s; the file before it was not given, so that was not checked" % (path, origin))
        before = last
    print(NOT_PROVEN)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
