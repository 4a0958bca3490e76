#!/usr/bin/env python3
"""Verifies the AIVS session proof in this directory (draft-stone-aivs-00).

    python3 -I verify.py [DIRECTORY] [--key PUBLIC_KEY_HEX]

DIRECTORY is the unpacked bundle's session_proof; by default the one of this file.
With --key the bundle must be signed by that key.

Needs Python 3.6 or newer and nothing else, no network. Prints PASS, FAIL or SKIP
for each check, then whether the bundle is intact, and the verdict recorded in it.
Exits 0 when the bundle is intact, else 1. This file came with the bundle: for a
bundle that you do not trust, run a verifier that you got elsewhere.
"""
import hashlib
import json
import sys
from pathlib import Path

# ---- the sentences


class Says:
    """The sentences of a verification: those of `plumbline bundle verify`, word for word."""

    # What was checked and is right.
    PASS_CHAIN = "hash chain: %d rows, each linked to the one before"
    PASS_MANIFEST = "manifest: chain hash, count and session agree with the log"
    PASS_SIGNATURE = "signature: Ed25519, by %s"
    PASS_SIGNER = "who signed: the key is one that was given with --key, or that it leads to"
    PASS_ATTESTATION = "second signature: every file is signed for by the same key"
    PASS_CONTENTS = "contents: inputs, outputs and errors are sealed by row %d"
    PASS_MEMBERS = "files: %d files are those that row 1 lists"
    PASS_TRACES = "traces: %d lines, one for each row"

    # What could not be checked. SKIP is the draft's word (section 7.2).
    SKIP = "SKIP  NOT CHECKED: %s"
    NO_SIGNER = "who signed. Get the operator's public key by another way and run again with --key."
    NO_SIGNATURE = "the signature. The bundle is not signed: anyone can have made it."
    NO_TRACES = "the traces. The bundle carries none."
    NO_FILES = "files other than the log. There is no open row and no second signature, so nothing covers them."
    NO_NUMBERS = "missing rows. The generator counts the rows of all its sessions together, so a gap shows nothing."
    NO_BORDER = "where inputs end and outputs begin. The hash of row %d, and of others like it, does not show it."
    NONE_AFTER = "inputs, outputs and errors after row %d, the last seal. Nothing covers them."
    NONE_MIXED = "errors, and inputs and outputs of the rows hashed over seven fields. There is no seal row, so nothing covers them."
    NO_ERRORS = "errors. There is no seal row, so nothing covers them."
    NO_CONTENTS = "inputs, outputs and errors. There is no seal row, so nothing covers them."

    # Faults of any text.
    MISSING = "missing"
    NOT_PLAIN = "not a plain file"
    TOO_LARGE = "more than %d bytes"
    LONG_LINE = "a line is longer than %d bytes"
    NOT_JSON = "not strict JSON"
    NOT_OBJECT = "not a JSON object"
    TOO_DEEP = "not strict JSON: nested deeper than %d levels"
    NOT_OURS = "not written as Plumbline writes it"
    NOT_SHA256 = "not a SHA-256 in 64 lower-case hexadecimal digits"
    NOT_OF_ROW1 = "changed: not what row 1 says"
    TOO_MANY = "more than %d files"
    NAMES_TWICE = "two files have the same name, or differ only in case"
    FOLDER_TOO = "a file has the name of a folder"

    # Faults of a row.
    MEMBER = "member %s is missing, of the wrong type or out of range"
    EMPTY_LINE = "an empty line stands before it"
    OTHER_ONE = "its session_id is not that of row 1"
    COLON = "a ':' in session_id, action_type or tool_name makes its hash ambiguous"
    UNLINKED = "does not follow row %d: its prev_hash is not the hash of that row"
    REHASHED = "changed: its row_hash is not the hash of its fields"
    REDIGESTED = "its inputs or outputs were changed, or redacted, after their digests were made"
    OUT_OF_ORDER = "missing or out of order (found number %d)"
    UNSEALED = "an input, output or error was changed after row %d sealed them"
    AFTER_SEAL = "comes after the seal, which must be the last row"
    LATE_OPEN = "an open row, which only row 1 may be"
    SEAL_CONTENT = "a seal row has no contents, and the time of row 1"
    SEAL_EMPTY = "a seal row has no inputs, outputs or error, since nothing covers them"
    NO_SEAL = "the last row is not a seal: rows were removed from the end"
    INPUTS = "its inputs_json is not a JSON object"
    NEWER = "%s was made by a newer version than this verifier knows"
    NOT_OPENING = "not written as Plumbline writes it, or of another session"
    KEY_ID = "its key_id is not that of public_key.pem"
    TRACE_COUNT = "its trace_count is %d, there are %d rows"
    TRACE_DIGEST = "its trace_sha256 is not that of line %d of traces.jsonl"

    # Rows compared with their traces.
    ROW_CHANGED = "changed: its %s is not that of its trace, line %d of traces.jsonl"
    ROW_MOVED = "moved: its trace is line %d of traces.jsonl, before those of rows before it"
    ROW_REPEATED = "added: it has the trace of row %d"
    ROW_ADDED = "added: no line of traces.jsonl is its trace"
    ROW_REMOVED = "the row of line %d was removed"
    MORE_ROWS = "more of them differ from their traces"

    # Faults of a file.
    LISTED = "missing, though row 1 lists it"
    UNLISTED = "not a file of this bundle: row 1 does not list it"
    FILE_CHANGED = "changed: not the file that was sealed"
    TRACE_CHANGED = "line %d was changed: it is not the trace that row %d records"
    TRACE_LINES = "%d lines for %d rows"
    VERIFIER = "not a verify.py that this version of Plumbline writes, or an earlier one"
    MANIFEST = "changed: not what row 1 says, or not written as Plumbline writes it"
    NO_MANIFEST = "session_id, chain_hash or action_count is missing"
    CHAIN_HASH = "chain_hash is %s, the log has %s"
    COUNT = "action_count is %s, the log has %d rows"
    SESSION = "session_id is %s, the rows have %s"

    # Faults of the key and of the signatures.
    LOG_CHANGED = "the log was changed after it was signed: its chain hash is not the one written here"
    UNSIGNED = "there is no signature, and one is required"
    WRONG = "the signature is wrong: it is not by the key in public_key.pem over this log"
    NOT_BASE64 = "the signature is not the base64 of 64 bytes"
    EMPTY_SIGNED = "the signature or the chain_hash it is over is empty"
    TWO_LINES = "two lines %s"
    NO_KEY = "there is a signature but no key"
    NOT_KEY = "not an Ed25519 public key"
    TWO_KEYS = "the public key was replaced: the file holds two keys that differ"
    SMALL_ORDER = "a key of small order: it accepts signatures that nobody made"
    STRANGER = "signed by %s, which is not a key given with --key"
    ATTEST_MISSING = "missing, though the bundle is signed"
    ATTEST_ALONE = "the main signature is missing or wrong, so this second one cannot be trusted"
    ATTEST_OTHER = "the second signature does not match these files"
    ATTEST_KEY = "no signature in it is by the key in public_key.pem"
    ENVELOPE = "not an envelope of application/vnd.in-toto+json"
    STATEMENT = "its statement is not an in-toto statement"
    SIGNATURES = "more than %d signatures"
    SIGNED_OTHER = "%s is not the file that was signed for"
    NOT_SIGNED_FOR = "%s is not signed for"

    # The conclusions: about the bundle, then about the agent.
    NOT_INTACT = "NOT INTACT: do not rely on this bundle."
    INTACT = "INTACT: this bundle is unchanged since it was signed."
    SELF_INTACT = "INTACT, NOT SIGNED: this bundle agrees with itself, but anyone can have made or changed it."
    PART_INTACT = "INTACT IN PART: the signature covers %s; nothing else in this bundle is protected."
    ROWS = "session, action, tool, cost, time and order of the rows"
    INPUTS_TOO = "their inputs"
    OUTPUTS_TOO = "their outputs"
    ERRORS_TOO = "their errors"
    FILES_TOO = "the other files"
    ABOUT_AGENT = "It says nothing about whether the agent behaved well."
    VERDICT = "Verdict recorded inside: %s (%s, %s)."
    NO_VERDICT = "Verdict recorded inside: none."
    LONG_VERDICT = "Verdict recorded inside: not read, since session.json is larger than %d bytes."
    VERDICTLESS = "Verdict recorded inside: not read, since the bundle is not intact."

    # What no verification shows.
    NOT_PROVEN = "Not proven:"
    NOT_TRUTH = "Truthfulness: what the rows say need not have happened, and an action that was never recorded leaves no trace."
    NOT_TIME = "Time: each decision has the time that the agent gave."
    NOT_OWNER = "Key: the bundle names the key that signed it; whose key that is must be known from elsewhere."


# ---- Ed25519 verification (RFC 8032), on extended coordinates (x, y, z, x*y/z)

P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
ROOT = pow(2, (P - 1) // 4, P)  # a square root of -1
HEX = "0123456789abcdef"
ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


def point_add(p, q):
    a = (p[1] - p[0]) * (q[1] - q[0])
    b = (p[1] + p[0]) * (q[1] + q[0])
    c = 2 * p[3] * q[3] * D
    d = 2 * p[2] * q[2]
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P


def point_times(n, p):
    total = (0, 1, 1, 0)
    while n:
        if n & 1:
            total = point_add(total, p)
        p = point_add(p, p)
        n >>= 1
    return total


def point_from(data):
    """The curve point that 32 bytes stand for, or None."""
    number = int.from_bytes(data, "little")
    y, odd = (number & ((1 << 255) - 1)) % P, number >> 255
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * ROOT % P
    if (x * x - square) % P:
        return None
    if x & 1 != odd:
        x = -x % P
    return x, y, 1, x * y % P


def point_bytes(p):
    inverse = pow(p[2], P - 2, P)
    x, y = p[0] * inverse % P, p[1] * inverse % P
    return (y | (x & 1) << 255).to_bytes(32, "little")


BASE = point_from((4 * pow(5, P - 2, P) % P).to_bytes(32, "little"))


def small_order(key):
    """Whether the point is one of those for which anyone can make a signature."""
    point = point_from(key)
    return point is not None and point_bytes(point_times(8, point)) == (1).to_bytes(32, "little")


def signature_holds(key, signature, message):
    a, s = point_from(key), int.from_bytes(signature[32:], "little")
    if a is None or s >= ORDER:
        return False
    digest = hashlib.sha512(signature[:32] + key + message).digest()
    minus_a = (-a[0] % P, a[1], 1, -a[3] % P)
    r = point_add(point_times(s, BASE), point_times(int.from_bytes(digest, "little") % ORDER, minus_a))
    return point_bytes(r) == signature[:32]


# ---- reading strictly


class Fault(Exception):
    """What is wrong, and where; one text for each place. The detail is the reader's own: other readers say it in other words."""

    def __init__(self, *texts, detail=""):
        super().__init__(*texts)
        self.detail = str(detail)


class Changed(Fault):
    """The contents are not those sealed."""


class Unlinked(Fault):
    """A row is not linked to the one before, perhaps because that one was changed, and hashed again."""


def printable(text):
    """The text on one line, in ASCII."""
    return "".join(c if " " <= c <= "~" else json.dumps(c)[1:-1] for c in text)


def quoted(text):
    return json.dumps(text[:80])


def shown(value):
    """A value of JSON, in short."""
    if type(value) is Digits:
        return value[:40]
    return quoted(value) if type(value) is str else json.dumps(value)[:40]


def hex_bytes(text, size):
    low = text.lower()
    if len(low) != 2 * size or any(c not in HEX for c in low):
        return None
    return bytes.fromhex(low)


def base64_any(text):
    """The bytes of the one canonical, padded base64 text, or None."""
    return base64_bytes(text, len(text) // 4 * 3 - (len(text) - len(text.rstrip("="))))


def base64_bytes(text, size):
    """The size bytes of the one canonical, padded base64 text, or None."""
    body = text.rstrip("=")
    if len(text) != (size + 2) // 3 * 4 or len(body) != (8 * size + 5) // 6:
        return None
    if any(c not in ALPHABET for c in body):
        return None
    spare, whole = 6 * len(body) - 8 * size, bytearray()
    for start in range(0, len(body), 1024):  # in pieces, since long numbers are slow
        piece, number = body[start:start + 1024], 0
        for c in piece:
            number = number << 6 | ALPHABET.index(c)
        cut = spare if start + 1024 >= len(body) else 0
        if number & ((1 << cut) - 1):
            return None
        whole += (number >> cut).to_bytes((6 * len(piece) - cut) // 8, "big")
    return bytes(whole)


def unique(pairs):
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("duplicate member")
    return members


def no_constant(name):
    raise ValueError(name + " is not JSON")


class Digits(str):
    """A whole number that is slow to read, and that nothing here can be."""


def whole_number(digits):
    return int(digits) if len(digits) < 100 else Digits(digits)


DECODER = json.JSONDecoder(object_pairs_hook=unique, parse_constant=no_constant, parse_int=whole_number)
DEPTH = 500  # of objects and arrays in one another; readers end somewhere, each at a depth of its own


def parse_object(text, where):
    deep = "%s: %s" % (where, Says.TOO_DEEP % DEPTH)
    try:
        value = DECODER.decode(text)
    except RecursionError:
        raise Fault(deep)
    except ValueError as e:
        raise Fault("%s: %s" % (where, Says.NOT_JSON), detail=e)
    if text.count("{") + text.count("[") > DEPTH and levels(value) > DEPTH:
        raise Fault(deep)
    if "\\ud" in text or "\\uD" in text:
        whole_characters(value, where)
    if type(value) is not dict:
        raise Fault("%s: %s" % (where, Says.NOT_OBJECT))
    return value


def levels(value):
    """How deep objects and arrays lie in one another."""
    depth, level = 0, [value]
    while level:
        depth += 1
        inner = [v.values() if type(v) is dict else v for v in level]
        level = [m for members in inner for m in members if type(m) in (dict, list)]
    return depth


def whole_characters(value, where):
    """Refuses half of a surrogate pair, which is no character."""
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        raise Fault("%s: %s" % (where, Says.NOT_JSON), detail="half of a surrogate pair")


def utf8(data, where):
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as e:
        raise Fault("%s: %s" % (where, Says.NOT_JSON), detail=e)


def open_plain(directory, name):
    """Opens a file; what is there but is none, such as a pipe, could block or never end."""
    path = directory / name
    try:
        if path.exists() and not path.is_file():
            raise Fault("%s: %s" % (name, Says.NOT_PLAIN))
        return path.open("rb")
    except FileNotFoundError:
        raise Fault("%s: %s" % (name, Says.MISSING))
    except OSError as e:
        raise Fault("%s: %s" % (name, e.strerror))


LINE = 16 << 20      # bytes of a row or a trace at most
SMALL = 256 << 10    # and of each of the draft's small files
FILES = 10000 * 1280  # of the attestation, which has a line for each of many files


def read(directory, name, limit=SMALL):
    """A small file, each of its bytes as the character of that number."""
    with open_plain(directory, name) as f:
        data = f.read(limit + 1)
    if len(data) > limit:
        raise Fault("%s: %s" % (name, Says.TOO_LARGE % limit))
    return data.decode("latin-1")


def read_json(directory, name, limit=SMALL):
    text = utf8(read(directory, name, limit).encode("latin-1"), name)
    return parse_object(text, name), text


def each_line(lines, name):
    """The lines, none of them too long to hold."""
    for line in iter(lambda: lines.readline(LINE + 1), b""):
        if len(line) > LINE:
            raise Fault("%s: %s" % (name, Says.LONG_LINE % LINE))
        yield line


def check_sizes(directory, names):
    """Refuses large files of the draft, those that nothing else here reads, too."""
    for name in DRAFT_FILES[1:]:
        limit = SMALL + FILES if name == ATTESTATION else SMALL
        if name in names and (directory / name).stat().st_size > limit:
            raise Fault("%s: %s" % (name, Says.TOO_LARGE % limit))


def folded(name):
    """The name with the letters A to Z in lower case. What file systems and languages make of others differs."""
    return "".join(c.lower() if "A" <= c <= "Z" else c for c in name)


def within_file(name, files):
    """Whether one of the folders of a name is a file."""
    parts = name.split("/")
    return any("/".join(parts[:i]) in files for i in range(1, len(parts)))


def plain_files(directory):
    """The names of all files. What an archive cannot hold, or only to deceive, is refused."""
    names = []
    for path in sorted(directory.rglob("*")):
        name = path.relative_to(directory).as_posix()
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            raise Fault("%s: %s" % (name, Says.NOT_PLAIN))
        if not path.is_dir():
            names.append(name)
    if len(names) > 10000:
        raise Fault("archive: " + Says.TOO_MANY % 10000)
    files = set(folded(name) for name in names)
    if len(files) < len(names):
        raise Fault("archive: " + Says.NAMES_TWICE)
    if any(within_file(name, files) for name in files):
        raise Fault("archive: " + Says.FOLDER_TOO)
    return names


def sha256_hex(data):
    return hashlib.sha256(data).hexdigest()


# ---- the log

TYPES = (("id", int), ("session_id", str), ("action_type", str), ("tool_name", str), ("inputs_json", str),
         ("outputs_json", str), ("cost_cents", int), ("error", str), ("timestamp", float), ("prev_hash", str),
         ("row_hash", str))
NAMES = [name for name, _ in TYPES]
CONTENTS = ("inputs_json", "outputs_json", "error")
OPEN = "plumbline.open."
CONTENT = "aivs.content.sha256."
NOTHING = ("", "{}")  # of inputs and outputs
OPENING = (("session_id", str), ("agent_id", str), ("exported_at", str), ("part", int), ("last_part", bool),
           ("trace_count", int), ("redactions", int), ("optional_redactions", int), ("generator", str),
           ("generator_url", str), ("key_id", str), ("previous_bundle_hash", str), ("members", list))
COUNTS = ("part", "trace_count", "redactions", "optional_redactions")
OPTIONAL = ("optional_redactions", "agent_id", "key_id", "previous_bundle_hash")  # absent instead of empty
ATTESTATION = "attestation.dsse.json"
PREVIOUS = "previous_bundle_hash.txt"
DRAFT_FILES = ("audit_log.jsonl", "manifest.json", "public_key.pem", "session_sig.txt", "verify.py", PREVIOUS, ATTESTATION)
NAME = HEX + "ghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ._~=-"


def is_digest(text):
    return len(text) == 64 and all(c in HEX for c in text)


def unix_seconds(text):
    """The seconds since 1970 of YYYY-MM-DDTHH:MM:SSZ, or None."""
    if "".join("0" if c in HEX[:10] else c for c in text) != "0000-00-00T00:00:00Z":
        return None
    year, month, day, hour, minute, second = [int(text[at:at + 4 if at == 0 else at + 2]) for at in (0, 5, 8, 11, 14, 17)]
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    lengths = (31, 29 if leap else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
    if year < 1970 or not 1 <= month <= 12 or not 1 <= day <= lengths[month - 1] or hour > 23 or minute > 59 or second > 59:
        return None
    before = year - 1
    days = 365 * (year - 1970) + (before // 4 - 492) - (before // 100 - 19) + (before // 400 - 4)
    return (days + sum(lengths[:month - 1]) + day - 1) * 86400 + hour * 3600 + minute * 60 + second


def parse_opening(text):
    """The contents of the open row, which have one form only."""
    try:
        opening = parse_object(text, "inputs_json")
        check_opening(opening)
        ordered = dict((name, opening[name]) for name, _ in OPENING if name in opening)
        if len(ordered) != len(opening) or json.dumps(ordered, separators=(",", ":")) != text:
            raise ValueError("its inputs_json has another form")
    except Fault as fault:
        raise Fault("row 1: " + Says.NOT_OPENING, detail="; ".join(fault.args))
    except ValueError as e:
        raise Fault("row 1: " + Says.NOT_OPENING, detail=e)
    return opening


def check_opening(opening):
    for name, kind in OPENING:
        if type(opening.get(name)) is not kind and not (name in OPTIONAL and name not in opening):
            raise ValueError("its inputs_json has no %s of type %s" % (name, kind.__name__))
    if any(opening.get(name) in ("", 0) for name in OPTIONAL):
        raise ValueError("an empty member must be absent")
    if unix_seconds(opening["exported_at"]) is None:
        raise ValueError("its exported_at is not a UTC time to the second")
    if opening["part"] < 1 or any(not 0 <= opening.get(name, 0) < 2**53 for name in COUNTS):
        raise ValueError("its part, trace_count, redactions or optional_redactions is out of range")
    if not is_digest(opening.get("previous_bundle_hash", "0" * 64)):
        raise ValueError("its previous_bundle_hash is not a SHA-256")
    check_listed(opening["members"])


def check_listed(members):
    """verify.py first, then plain names, none of them twice or one of the draft's files."""
    seen = set()
    for m in members:
        if type(m) is not dict or [(k, type(m[k])) for k in m] != [("name", str), ("bytes", int), ("sha256", str)]:
            raise ValueError("its list of members is malformed")
        if not 0 <= m["bytes"] < 2**53 or not is_digest(m["sha256"]):
            raise ValueError("size or SHA-256 of member %s is malformed" % quoted(m["name"]))
        parts, low = m["name"].split("/"), m["name"].lower()
        if any(part[:1] in ("", ".") or any(c not in NAME for c in part) for part in parts):
            raise ValueError("it lists the unsafe name %s" % quoted(m["name"]))
        if low in seen or (seen and parts[-1].lower() in DRAFT_FILES):
            raise ValueError("it lists %s, which is there already" % quoted(m["name"]))
        seen.add(low)
    if any(within_file(low, seen.union(DRAFT_FILES)) for low in seen):
        raise ValueError("it lists a file with the name of a folder")
    if not members or members[0]["name"] != "verify.py":
        raise ValueError("the first of its members is not verify.py")


class Log:
    """Folds audit_log.jsonl, and what its rows say about traces.jsonl."""

    def __init__(self):
        self.rows, self.prev, self.session = 0, "", None
        self.links, self.content = hashlib.sha256(), hashlib.sha256()
        self.opening = None  # of a bundle in Plumbline's own dialect
        self.blank = False   # an empty line was seen
        self.sealed = 0      # the row of the last content seal
        self.actions = 0     # rows between open and seal
        self.has_traces = False
        self.traces = []     # and the digest in each, where the bundle carries the traces
        # The draft's first generator counts the rows of all its sessions together, and
        # later hashes nine fields: inputs and outputs, too, or their digests.
        self.last, self.gap = 0, None           # the id before; the first that is not its row's number
        self.seven = self.nine = False          # which hashes were met
        self.joined = 0                         # the first row hashed over inputs and outputs as text

    def add(self, line):
        where = "row %d" % (self.rows + 1)
        if not line.strip(b" \t\r\n"):
            self.blank = True
            if self.opening is not None:
                raise Fault("%s: %s" % (where, Says.EMPTY_LINE))
            return
        row = parse_object(utf8(line, where), where)
        self.check_fields(row, where)
        if self.session is None:
            self.session = row["session_id"]
        self.nine = self.nine or type(row.get("inputs_digest")) is str or "schema_version" in row
        opens = self.is_open(row)
        own = opens or self.opening is not None
        problem = self.link_problem(row, own)
        if row["id"] != self.rows + 1 or row["id"] <= self.last:
            found = Says.OUT_OF_ORDER % row["id"]
            if problem or own or row["id"] <= self.last:
                problem = found
            elif self.gap is None:
                self.gap = "%s: %s" % (where, found)
        if problem == Says.UNLINKED % self.rows:
            raise Unlinked("%s: %s" % (where, problem))
        if problem:
            raise Fault("%s: %s" % (where, problem))
        if self.is_seal(row) and row["tool_name"] != CONTENT + self.content.hexdigest():
            before = "rows 1-%d" % self.rows if self.rows > 1 else "row 1"
            raise Changed("%s: %s" % (before, Says.UNSEALED % (self.rows + 1)))
        if opens and row["id"] == 1:
            self.open(row)
        if self.opening is not None:
            self.check_own(row, line, where)
        elif self.is_seal(row):
            if row["inputs_json"] not in NOTHING or row["outputs_json"] not in NOTHING or row["error"] != "":
                raise Fault("%s: %s" % (where, Says.SEAL_EMPTY))
            self.sealed = self.rows + 1
        self.rows, self.last, self.prev = self.rows + 1, row["id"], row["row_hash"]
        self.links.update(self.prev.encode())
        for name in CONTENTS:
            self.content.update(hashlib.sha256(row[name].encode("utf-8")).digest())

    def check_fields(self, row, where):
        for name, kind in TYPES:
            value = row.get(name)
            if type(value) is not kind or kind is int and not 0 <= value < 2**53 or kind is float and value - value != 0:
                raise Fault("%s: %s" % (where, Says.MEMBER % name))

    def link_problem(self, row, own):
        """What is wrong with a row, whatever its id, and its link to the one before."""
        if row["session_id"] != self.session:
            return Says.OTHER_ONE
        if ":" in row["session_id"] + row["action_type"] + row["tool_name"]:
            return Says.COLON
        if row["prev_hash"] != self.prev:
            return Says.UNLINKED % self.rows
        if self.hashed(row) == row["row_hash"]:
            self.seven = True
        else:
            problem = Says.REHASHED if own else self.nine_problem(row)
            if problem:
                return problem

    def hashed(self, row, *further):
        fields = ["%d:%s:%s:%s:%d:%r:%s" % (row["id"], row["session_id"], row["action_type"], row["tool_name"],
                                            row["cost_cents"], row["timestamp"], self.prev)]
        return sha256_hex(":".join(fields + list(further)).encode("utf-8"))

    def nine_problem(self, row):
        """Checks a row hash that is not the draft's against those over nine fields."""
        texts = [row["inputs_json"], row["outputs_json"]]
        digests = [sha256_hex(text.encode("utf-8")) if text else "" for text in texts]
        stated = [row.get(name) if type(row.get(name)) is str else None for name in ("inputs_digest", "outputs_digest")]
        if None not in stated:
            if self.hashed(row, *stated) == row["row_hash"]:
                self.nine = True
                return None if stated == digests else Says.REDIGESTED
        elif stated == [None, None]:
            if self.hashed(row, *digests) == row["row_hash"]:
                self.nine = True
                return None
            if self.hashed(row, *texts) == row["row_hash"]:
                self.nine, self.joined = True, self.joined or self.rows + 1
                return None
        return Says.REHASHED

    def is_open(self, row):
        return row["action_type"] == "open" and row["tool_name"].startswith(OPEN)

    def is_seal(self, row):
        return row["action_type"] == "seal" and row["tool_name"].startswith(CONTENT)

    def open(self, row):
        if row["tool_name"] != OPEN + "1":
            raise Fault("row 1: " + Says.NEWER % quoted(row["tool_name"]))
        o = parse_opening(row["inputs_json"])
        self.exported = float(unix_seconds(o["exported_at"]))
        own = (row["session_id"], row["outputs_json"], row["error"], row["cost_cents"], row["timestamp"])
        if own != (encode(o["session_id"]), "{}", "", 0, self.exported) or self.blank:
            raise Fault("row 1: " + Says.NOT_OPENING)
        self.opening = o
        self.has_traces = any(m["name"] == "traces.jsonl" for m in o["members"])

    def check_own(self, row, line, where):
        """Checks what our own dialect demands beyond the draft."""
        if self.sealed:
            raise Fault("%s: %s" % (where, Says.AFTER_SEAL))
        if NAMES != list(row) or json.dumps(row).encode() + b"\n" != line:
            raise Fault("%s: %s" % (where, Says.NOT_OURS))
        if self.rows > 0 and self.is_open(row):
            raise Fault("%s: %s" % (where, Says.LATE_OPEN))
        if self.is_seal(row):
            if [row[name] for name in CONTENTS + ("cost_cents", "timestamp")] != ["{}", "{}", "", 0, self.exported]:
                raise Fault("%s: %s" % (where, Says.SEAL_CONTENT))
            self.sealed = row["id"]
        elif self.rows > 0:
            self.actions += 1
            if self.has_traces:
                self.traces.append(digest_in(inputs_of(row, where)))

    def chain_hash(self):
        return self.links.hexdigest() if self.rows else sha256_hex(b"empty")

    def covered(self):
        """What a signature over the chain hash covers of a log that is not ours, in words."""
        if self.sealed == self.rows > 0:
            return [Says.ROWS, Says.INPUTS_TOO, Says.OUTPUTS_TOO, Says.ERRORS_TOO]
        if self.nine and not self.seven and not self.joined:
            return [Says.ROWS, Says.INPUTS_TOO, Says.OUTPUTS_TOO]
        return [Says.ROWS]

    def uncovered(self):
        """What neither rows nor manifest of such a log give a means to check."""
        if self.gap is not None:
            yield Says.NO_NUMBERS
        if self.joined:
            yield Says.NO_BORDER % self.joined
        if self.sealed == self.rows > 0:
            return
        if self.sealed:
            yield Says.NONE_AFTER % self.sealed
        elif self.nine and self.seven:
            yield Says.NONE_MIXED
        elif self.nine:
            yield Says.NO_ERRORS
        else:
            yield Says.NO_CONTENTS


def inputs_of(row, where):
    try:
        return parse_object(row["inputs_json"], "inputs_json")
    except Fault as fault:
        raise Fault("%s: %s" % (where, Says.INPUTS), detail="; ".join(fault.args))


def digest_in(inputs):
    """The trace_sha256 of a row. What is no digest is that of no trace, and may be too long to keep."""
    digest = text(member(inputs, "trace_sha256"))
    return digest if is_digest(digest) else ""


def passed(sentence):
    print("PASS  " + sentence)


def not_checked(sentence):
    print(Says.SKIP % sentence)


def check_log(directory):
    log = Log()
    try:
        with open_plain(directory, "audit_log.jsonl") as lines:
            for line in each_line(lines, "audit_log.jsonl"):
                log.add(line)
    except Changed as changed:
        raise Fault(*(changed_rows(directory, log) or changed.args))
    except Unlinked as unlinked:
        raise Fault(*changed_rows(directory, log) + list(unlinked.args))
    passed(Says.PASS_CHAIN % log.rows)
    return log


def changed_rows(directory, log):
    """Names the rows that differ from their traces, once it is known that some row was changed."""
    listed = log.opening["members"] if log.has_traces else []
    sealed = [(m["sha256"], m["bytes"]) for m in listed if m["name"] == "traces.jsonl"]
    try:
        if not sealed or file_digest(directory, "traces.jsonl") not in sealed:
            return []  # only the traces that row 1 lists show which row was changed
        digests, offsets = stated_digests(directory, log)
        return rows_and_traces(digests, *paired(directory, digests, offsets))
    except Fault:
        return []


def stated_digests(directory, log):
    """The trace_sha256 of each row behind the open row, None of a seal, and where the row begins."""
    digests, offsets, at = [], [], 0
    with open_plain(directory, "audit_log.jsonl") as lines:
        for line in each_line(lines, ""):
            row = parse_object(utf8(line, ""), "")
            log.check_fields(row, "")
            digest = digest_in(value_of(row["inputs_json"].encode("utf-8")))
            digests.append(None if log.is_seal(row) and not digest else digest)
            offsets.append(at)
            at += len(line)
    return digests[1:], offsets[1:]


def paired(directory, digests, offsets):
    """The line of each row's trace, how the row differs from it, and whether a row states the line's digest."""
    first, places, differences, stated = {}, {}, {}, [True]
    for i, digest in enumerate(digests):
        first.setdefault(digest, i)
    with open_plain(directory, "audit_log.jsonl") as rows, open_plain(directory, "traces.jsonl") as traces:
        for number, trace in enumerate(each_line(traces, ""), 1):
            if number > len(digests) + 100:
                break
            trace = trace.rstrip(b"\n")
            i = first.get(sha256_hex(trace))
            stated.append(i is not None and i not in places)
            if stated[-1]:
                rows.seek(offsets[i])
                places[i], differences[i] = number, difference(parse_object(utf8(rows.readline(), ""), ""), trace)
    return first, places, differences, stated


def rows_and_traces(digests, first, places, differences, stated):
    """A row that was removed or added moves all those behind it, and changes none of them."""
    found, following = [], 1
    for i, digest in enumerate(digests):
        line, said = places.get(i, 0), None
        if line >= following:
            following = line + 1
            said = Says.ROW_CHANGED % (differences[i], line) if differences[i] else None
        elif line:
            said = Says.ROW_MOVED % line
        elif digest is None:
            pass
        elif following < len(stated) and not stated[following]:
            stated[following] = True
            said = Says.ROW_CHANGED % ("inputs_json", following)
            following += 1
        elif first[digest] in places:
            said = Says.ROW_REPEATED % (first[digest] + 2)
        else:
            said = Says.ROW_ADDED
        if said and len(found) == 100:
            return found + ["rows %d-%d: %s" % (i + 2, len(digests) + 1, Says.MORE_ROWS)]
        if said:
            found.append("row %d: %s" % (i + 2, said))
    gone = ["traces.jsonl: " + Says.ROW_REMOVED % n for n, row in enumerate(stated) if not row]
    return found + gone[:100 - len(found)]


def difference(row, line):
    """The first field of a row that is not what its trace says. Redacted values and cut outputs are not compared."""
    entry, trace = value_of(row["inputs_json"].encode("utf-8")), value_of(line)
    if type(trace) is not dict:
        return None
    pairs = [("inputs_json", entry.get(name), trace.get(name)) for name in ("trace_id", "card_id")]
    action, execution = trace.get("action"), member(member(trace.get("context"), "metadata"), "execution")
    if type(action) is not dict or type(action.get("type")) is not str:
        return first_different(pairs)
    kind, tool, inputs = "aap." + action["type"], "aap." + text(action.get("name")), action.get("parameters") or {}
    executed, name = type(execution) is dict, text(member(execution, "tool_name"))
    if executed:
        kind, inputs = "tool_call", execution.get("inputs", {})
        tool = name if "." in name else "tool." + name if name else tool
    cost = execution.get("cost_cents", 0) if executed else None
    cut = row["outputs_json"].startswith('{"truncated":true')
    pairs += [("inputs_json", entry.get("inputs"), inputs)]
    if executed:
        pairs += [("outputs_json", value_of(row["outputs_json"].encode("utf-8")), execution.get("outputs", {}))] * (not cut)
        pairs += [("error", row["error"], text(execution.get("error")))]
    pairs += [("action_type", row["action_type"], encode(kind)), ("tool_name", row["tool_name"], encode(tool))]
    if type(cost) is int:
        pairs += [("cost_cents", row["cost_cents"], cost)]
    at = moment(text(trace.get("timestamp")))
    if at is not None:
        pairs += [("timestamp", abs(at - row["timestamp"]) > 1e-3, False)]
    return first_different(pairs)


WRITTEN = json.JSONDecoder(object_pairs_hook=unique, parse_constant=no_constant, parse_int=whole_number,
                           parse_float=lambda digits: {"float": digits})


def value_of(data):
    """The value of JSON text, floats as they are written; for what is not JSON one that no value equals."""
    try:
        return WRITTEN.decode(data.decode("utf-8"))
    except (ValueError, RecursionError):
        return float("nan")


def first_different(pairs):
    for what, a, b in pairs:
        a, b = json.dumps(a), json.dumps(b)
        if a != b and "[REDACTED]" not in a + b:
            return what


def member(value, name):
    return value.get(name) if type(value) is dict else None


def text(value):
    return value if type(value) is str else ""


def encode(name):
    return name.replace("%", "%25").replace(":", "%3A")


def moment(stamp):
    """The seconds since 1970 of an RFC 3339 time, or None for one that is written in an unusual way."""
    at, rest, offset = unix_seconds(stamp[:19] + "Z"), stamp[19:], 0
    if rest[-1:] != "Z":
        rest, sign, zone = rest[:-6] + "Z", rest[-6:-5], rest[-5:]
        if sign not in ("+", "-") or "".join("0" if c in HEX[:10] else c for c in zone) != "00:00":
            return None
        offset = (int(zone[:2]) * 3600 + int(zone[3:]) * 60) * (1 if sign == "+" else -1)
    digits = rest[1:-1]
    if at is None or rest != "Z" and (rest[0] != "." or not digits or any(c not in HEX[:10] for c in digits)):
        return None
    return at - offset + (float("0." + digits) if digits else 0)


# ---- the small files


def check_manifest(directory, log, chain_hash):
    manifest, text = read_json(directory, "manifest.json")
    if None in [manifest.get(name) for name in ("session_id", "chain_hash", "action_count")]:
        raise Fault("manifest.json: " + Says.NO_MANIFEST)
    for name, want, said in (("chain_hash", chain_hash, Says.CHAIN_HASH), ("action_count", log.rows, Says.COUNT)):
        if type(manifest[name]) is not type(want) or manifest[name] != want:
            raise Fault(*changed_rows(directory, log) + ["manifest.json: " + said % (shown(manifest[name]), want)])
    session = manifest["session_id"]
    if type(session) is not str or log.session not in (None, session):
        raise Fault("manifest.json: " + Says.SESSION % (shown(session), quoted(log.session or "")))
    if log.gap is not None and "aivs_version" in manifest and "conduit_version" not in manifest:
        raise Fault(log.gap)
    passed(Says.PASS_MANIFEST)
    return manifest, text


def check_own_manifest(text, log, chain_hash):
    o = log.opening
    want = dict([("session_id", log.session), ("exported_at", o["exported_at"]), ("action_count", log.rows),
                 ("chain_hash", chain_hash), ("aivs_version", "1.0"), ("generator", o["generator"]),
                 ("generator_url", o["generator_url"]), ("original_session_id", o["session_id"])])
    for name in ("agent_id", "trace_count", "redactions", "optional_redactions", "part", "last_part",
                 "previous_bundle_hash", "key_id"):
        if name in o:
            want[name] = o[name]
    if json.dumps(want, indent=2) + "\n" != text:
        raise Fault("manifest.json: " + Says.MANIFEST)


def public_key(text):
    key = written_key(text)
    if key is not None and small_order(key):
        raise Fault("public_key.pem: " + Says.SMALL_ORDER)
    return key


def written_key(text):
    """The key in any form in use: SPKI PEM, a comment line, both, or bare."""
    found = set()
    for line in text.split("\n"):
        if line.startswith("# Ed25519 public key:"):
            found.add(hex_bytes(line.split(":", 1)[1].strip(" \t\r"), 32))
    begin, end = "-----BEGIN PUBLIC KEY-----", "-----END PUBLIC KEY-----"
    if begin in text and end in text.split(begin, 1)[1]:
        body = text.split(begin, 1)[1].split(end, 1)[0]
        der = base64_bytes("".join(c for c in body if c not in " \t\n\r\v\f"), 44)
        spki = der is not None and der[:12].hex() == "302a300506032b6570032100"
        found.add(der[12:] if spki else None)
    if not found:
        return bare_key(text)
    if None in found:
        raise Fault("public_key.pem: " + Says.NOT_KEY)
    if len(found) > 1:
        raise Fault("public_key.pem: " + Says.TWO_KEYS)
    return found.pop()


def bare_key(text):
    """The key alone: its 32 bytes as they are, in digits, or in base64."""
    bare = text.strip(" \t\r\n")
    if len(text) == 32:
        return text.encode("latin-1")
    if len(bare) == 64 and hex_bytes(bare, 32) is None:
        raise Fault("public_key.pem: " + Says.NOT_KEY)
    return hex_bytes(bare, 32) or base64_bytes(bare, 32)


def signature_lines(directory):
    if not (directory / "session_sig.txt").exists():
        return {}
    lines = {}
    for line in read(directory, "session_sig.txt").split("\n"):
        name, colon, value = line.partition(":")
        if colon and not line.startswith("#"):
            if name in lines:
                raise Fault("session_sig.txt: " + Says.TWO_LINES % quoted(name))
            lines[name] = value.strip(" \t\r")
    signed, hashed = "signature" in lines, "chain_hash" in lines
    if signed and not lines["signature"] or (signed or hashed) and not lines.get("chain_hash"):
        raise Fault("session_sig.txt: " + Says.EMPTY_SIGNED)
    return lines


def check_signature(directory, log, chain_hash, pinned):
    """Returns the key and the text of a valid signature; two times None where there is none."""
    lines = signature_lines(directory)
    if "chain_hash" in lines and lines["chain_hash"] != chain_hash:
        raise Fault(*changed_rows(directory, log) + ["session_sig.txt: " + Says.LOG_CHANGED])
    if "signature" not in lines:
        if pinned is not None or (log.opening and "key_id" in log.opening):
            raise Fault(*changed_rows(directory, log) + ["session_sig.txt: " + Says.UNSIGNED])
        not_checked(Says.NO_SIGNATURE)
        return None, None
    key = public_key(read(directory, "public_key.pem"))
    if key is None:
        raise Fault("public_key.pem: " + Says.NO_KEY)
    signature = base64_bytes(lines["signature"], 64)
    if signature is None:
        raise Fault("session_sig.txt: " + Says.NOT_BASE64)
    if not signature_holds(key, signature, chain_hash.encode()):
        raise Fault(*changed_rows(directory, log) + ["session_sig.txt: " + Says.WRONG])
    if pinned is not None and key != pinned:
        raise Fault(*changed_rows(directory, log) + ["public_key.pem: " + Says.STRANGER % key.hex()])
    passed(Says.PASS_SIGNATURE % key.hex())
    if pinned is None:
        not_checked(Says.NO_SIGNER)
    else:
        passed(Says.PASS_SIGNER)
    return key, lines["signature"]


def check_forms(directory, log, chain_hash, key, signature):
    """A bundle of our own has its two signature files in one form only."""
    if signature is None:
        signed, pem = "# Ed25519 signing not available\n", "# No signing key configured\n"
    else:
        signed = "signature:%s\n" % signature
        body = "".join(read(directory, "public_key.pem").split("\n")[1:2])
        if base64_bytes(body, 44) is None:
            raise Fault("public_key.pem: " + Says.NOT_OURS)
        pem = "-----BEGIN PUBLIC KEY-----\n%s\n-----END PUBLIC KEY-----\n# Ed25519 public key: %s\n" % (body, key.hex())
        if log.opening.get("key_id") != sha256_hex(key)[:16]:
            raise Fault(*changed_rows(directory, log) + ["row 1: " + Says.KEY_ID])
    if read(directory, "session_sig.txt") != "chain_hash:%s\n" % chain_hash + signed:
        raise Fault("session_sig.txt: " + Says.NOT_OURS)
    if read(directory, "public_key.pem") != pem:
        raise Fault("public_key.pem: " + Says.NOT_OURS)


# ---- the attestation: a DSSE envelope around an in-toto statement

PAYLOAD = "application/vnd.in-toto+json"
STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "https://github.com/plumbline/plumbline/aivs-session/v1"
FOLDER = "session_proof/"
SIGNATURES = 100  # are tried; each takes some time


def check_attestation(directory, log, key, chain_hash, names):
    """Checks that the same key signed for every other file; returns whether it did."""
    if ATTESTATION not in names:
        if log.opening is not None and key is not None and not made_early(directory):
            raise Fault("%s: %s" % (ATTESTATION, Says.ATTEST_MISSING))
        return False
    if key is None:
        raise Fault("%s: %s" % (ATTESTATION, Says.ATTEST_ALONE))
    payload = envelope_payload(directory, key, log.opening is not None)
    if log.opening is None:
        check_subjects(directory, payload, names)
    elif payload != own_statement(directory, log, chain_hash):
        raise Fault("%s: %s" % (ATTESTATION, Says.ATTEST_OTHER))
    passed(Says.PASS_ATTESTATION)
    return True


def own_statement(directory, log, chain_hash):
    """The statement over these files, in their one order, as Plumbline writes it."""
    previous = log.opening.get("previous_bundle_hash", "")
    names = list(DRAFT_FILES[:5]) + [PREVIOUS] * (previous != "") + [m["name"] for m in log.opening["members"][1:]]
    files = [{"name": FOLDER + name, "digest": {"sha256": file_digest(directory, name)[0]}} for name in names]
    about = {"session_id": log.session, "action_count": log.rows, "chain_hash": chain_hash, "previous_bundle_hash": previous}
    statement = {"_type": STATEMENT, "subject": files, "predicateType": PREDICATE, "predicate": about}
    return json.dumps(statement, separators=(",", ":"), ensure_ascii=False).encode("utf-8")


def either_alphabet(text):
    """Base64 in the standard alphabet: DSSE allows the other one, too."""
    return text.replace("-", "+").replace("_", "/") if type(text) is str else ""


def envelope_payload(directory, key, own):
    envelope, text = read_json(directory, ATTESTATION, SMALL + FILES)
    text64, kind, signatures = [member_of(envelope, *m) for m in (("payload", ""), ("payloadType", ""), ("signatures", []))]
    if None in (text64, kind, signatures):
        raise Fault("%s: %s" % (ATTESTATION, Says.ENVELOPE))
    if len(signatures) > SIGNATURES:
        raise Fault("%s: %s" % (ATTESTATION, Says.SIGNATURES % SIGNATURES))
    payload = base64_any(either_alphabet(text64))
    if payload is None or kind != PAYLOAD:
        raise Fault("%s: %s" % (ATTESTATION, Says.ENVELOPE))
    message = b"DSSEv1 %d %s %d %s" % (len(PAYLOAD), PAYLOAD.encode(), len(payload), payload)
    for entry in signatures:
        sig = entry.get("sig") if type(entry) is dict else None
        signature = base64_bytes(either_alphabet(sig), 64)
        if signature is not None and signature_holds(key, signature, message):
            form = {"payloadType": PAYLOAD, "payload": envelope["payload"], "signatures": [{"keyid": sha256_hex(key)[:16], "sig": sig}]}
            if own and json.dumps(form, separators=(",", ":")) + "\n" != text:
                raise Fault("%s: %s" % (ATTESTATION, Says.NOT_OURS))
            return payload
    raise Fault("%s: %s" % (ATTESTATION, Says.ATTEST_KEY))


def member_of(value, name, absent):
    """A member of an object, absent where it is missing or null, None where it is of another type."""
    if value.get(name) is None:
        return absent
    return value[name] if type(value[name]) is type(absent) else None


def subjects(payload):
    """The names and digests of the statement of another generator."""
    wrong = "%s: %s" % (ATTESTATION, Says.STATEMENT)
    try:
        statement = parse_object(utf8(payload, "its statement"), "its statement")
    except Fault as fault:
        raise Fault(wrong, detail="; ".join(fault.args))
    entries = member_of(statement, "subject", [])
    if member_of(statement, "_type", "") != STATEMENT or entries is None:
        raise Fault(wrong)
    found = []
    for entry in entries:
        entry = {} if entry is None else entry
        digest = member_of(entry, "digest", {}) if type(entry) is dict else None
        pair = (member_of(entry, "name", ""), member_of(digest, "sha256", "")) if digest is not None else (None, None)
        if None in pair:
            raise Fault(wrong)
        found.append(pair)
    return found


def check_subjects(directory, payload, names):
    """Checks that the statement of another generator lists every file once."""
    covered = set()
    for subject, digest in subjects(payload):
        name = subject[len(FOLDER):] if subject.startswith(FOLDER) else subject
        if name not in names or name in covered or file_digest(directory, name)[0] != digest:
            raise Fault("%s: %s" % (ATTESTATION, Says.SIGNED_OTHER % quoted(subject)))
        covered.add(name)
    for name in sorted(names):
        if name != ATTESTATION and name not in covered:
            raise Fault("%s: %s" % (ATTESTATION, Says.NOT_SIGNED_FOR % quoted(name)))


def file_digest(directory, name):
    """The SHA-256 and the size of a file."""
    digest, size = hashlib.sha256(), 0
    with open_plain(directory, name) as f:
        for block in iter(lambda: f.read(1 << 20), b""):
            digest.update(block)
            size += len(block)
    return digest.hexdigest(), size


# ---- the members that the open row lists


# verify.py of earlier versions, and whether their bundles have an attestation.
FORMER = {
    "4d996b879c1509526d54c5c20f673aa2f92667d1246beea08483b96fc7d5a895": False,
    "c8aecc44faa649ca2e4c2e40c9c7706228b9e40a257a193f1659ff85934dc233": True,
    "ecb06a1fc35cff8d95129aa5ac0e3030c243a852b13d2a543d46a6be77c860b9": True,
    "32bb318ac5e31230c276527dc8df32b99675e6f0d68afe887cd510da0a224bd1": True,
    "e1fcb67bdd17e008cefd08b249748165fc96997dc2f29b800b46178c2b504476": True,
    "6e7ea08277825542f9976b868f018f634a06576c365d140902e8808bbeaee507": True,
    "6fd59dac7c60b16854f41112f8ff2b957539f9ae0a5250e0ceede42c2dcf8cf5": True,
    "9b380f75a7748f79d09e8a99e27599353d73ca8bf3d32d67eb0c2fbdd1b0ddc6": True,
    "d05dedb800fbce9bb83a7a58a64edf881978501de178716ba4080eebc63fb9e1": True,
    "a61365f59912ae3452e3762100dd60849912cdc2d9ce68bcade8812bb1edfc6e": True,
    "57d785d53f017f8d488423ea3a49cba8f116a06c9f14b9067399e7a45b3e13e4": True,
    "0ce8e59126fc46aa2904a82c6244f99d39b2105e3fa0341065b1bf8e36c41c3c": True,
    "16b7387817259f0d6480208a36fa1cd052236e7f98c23e016d92673e2e1eeed4": True,
    "e483f017bca5a0b0b64e66b9bb0decc9212a5e7ec3bb3cd782f5e070bfbcbc32": True,
    "7c9a748a3605f506a5a96b8831b5b375f3439c5f19bc27cca593c801e2384ccb": True,
}


def made_early(directory):
    """Whether the bundle is from before there were attestations."""
    return FORMER.get(file_digest(directory, "verify.py")[0]) is False


def check_own(directory, log, chain_hash, text, key, signature, names):
    """Demands of a bundle of our own dialect that every byte be accounted for."""
    o = log.opening
    if log.sealed != log.rows:
        raise Fault("row %d: %s" % (log.rows, Says.NO_SEAL))
    check_own_manifest(text, log, chain_hash)
    check_forms(directory, log, chain_hash, key, signature)
    previous = o.get("previous_bundle_hash")
    if (PREVIOUS in names) != (previous is not None) or previous is not None and read(directory, PREVIOUS) != previous:
        raise Fault("%s: %s" % (PREVIOUS, Says.NOT_OF_ROW1))
    if "verify.py" in names:
        script = file_digest(directory, "verify.py")[0]
        if script not in FORMER and script != sha256_hex(Path(__file__).read_bytes()):
            raise Fault("verify.py: " + Says.VERIFIER)
    for member in o["members"]:
        check_member(directory, member, log)
    expected = set(DRAFT_FILES) | set(m["name"] for m in o["members"])
    for name in names:
        if name not in expected:
            raise Fault("%s: %s" % (name, Says.UNLISTED))
    passed(Says.PASS_CONTENTS % log.sealed)
    passed(Says.PASS_MEMBERS % len(o["members"]))
    check_traces(directory, log)


def check_member(directory, member, log):
    name = member["name"]
    if not (directory / name).exists():
        raise Fault("%s: %s" % (name, Says.LISTED))
    if file_digest(directory, name) == (member["sha256"], member["bytes"]):
        return
    bad = bad_trace(directory, log) if name == "traces.jsonl" else 0
    if bad:
        raise Fault("%s: %s" % (name, Says.TRACE_CHANGED % (bad, bad + 1)))
    raise Fault("%s: %s" % (name, Says.FILE_CHANGED))


def bad_trace(directory, log):
    """The first line of traces.jsonl that is not its row's trace, or 0."""
    with open_plain(directory, "traces.jsonl") as lines:
        for n, line in enumerate(each_line(lines, "traces.jsonl"), 1):
            if n <= len(log.traces) and (not line.endswith(b"\n") or sha256_hex(line[:-1]) != log.traces[n - 1]):
                return n
    return 0


def check_traces(directory, log):
    if log.opening["trace_count"] != log.actions:
        raise Fault("row 1: " + Says.TRACE_COUNT % (log.opening["trace_count"], log.actions))
    if not log.has_traces:
        not_checked(Says.NO_TRACES)
        return
    bad = bad_trace(directory, log)
    if bad:
        raise Fault("row %d: %s" % (bad + 1, Says.TRACE_DIGEST % bad))
    with open_plain(directory, "traces.jsonl") as lines:
        count = sum(1 for _ in each_line(lines, "traces.jsonl"))
    if count != len(log.traces):
        raise Fault("traces.jsonl: " + Says.TRACE_LINES % (count, len(log.traces)))
    passed(Says.PASS_TRACES % count)


def check_previous(directory, names):
    if PREVIOUS in names and not is_digest(read(directory, PREVIOUS).strip(" \t\r\n")):
        raise Fault("%s: %s" % (PREVIOUS, Says.NOT_SHA256))


# ---- the conclusion


def conclusion(log, key, whole):
    """Whether the bundle is intact, and where not all of it is covered by a signature, what is."""
    if key is None:
        said = Says.SELF_INTACT
    elif whole:
        said = Says.INTACT
    else:
        said = Says.PART_INTACT % ", ".join(log.covered())
    return said + " " + Says.ABOUT_AGENT


def recorded_verdict(directory, log, names):
    """What session.json of our own dialect concludes about the agent."""
    if log.opening is not None and "session.json" in names and (directory / "session.json").stat().st_size > SMALL:
        return Says.LONG_VERDICT % SMALL
    try:
        verdict = read_json(directory, "session.json")[0] if log.opening is not None and "session.json" in names else {}
    except Fault:
        verdict = {}
    action, traces = verdict.get("recommended_action"), verdict.get("traces")
    if action not in ("proceed", "review", "deny") or type(verdict.get("verified")) is not bool or type(traces) is not dict:
        return Says.NO_VERDICT
    maps = [traces.get("violations"), traces.get("findings"), verdict.get("finding_counts")]
    if any(m is not None and type(m) is not dict for m in maps):
        return Says.NO_VERDICT
    counts = [sum(n for n in (m or {}).values() if type(n) is int and 0 <= n < 2**31) for m in maps]
    return Says.VERDICT % (action.upper(), counted(counts[0], "violation"), counted(counts[1] + counts[2], "finding"))


def counted(n, what):
    return "%d %s%s" % (n, what, "" if n == 1 else "s")


LIMITATIONS = (  # AAP section 10.1
    "AAP does NOT ensure alignment - it provides visibility.",
    "Verified does NOT equal safe.",
    "AP-Trace is sampled, not complete.",
    "Value coherence is relative to declared values.",
    "Tested on transformer-based agents; unknown unknowns exist for other substrates.",
)


def print_not_proven():
    print("\n" + Says.NOT_PROVEN)
    for sentence in (Says.NOT_TRUTH, Says.NOT_TIME, Says.NOT_OWNER) + LIMITATIONS:
        print("  " + sentence)


def verify(directory, pinned):
    names = plain_files(directory)
    check_sizes(directory, names)
    log = check_log(directory)
    chain_hash = log.chain_hash()
    manifest, text = check_manifest(directory, log, chain_hash)
    key, signature = check_signature(directory, log, chain_hash, pinned)
    if log.opening is not None:
        check_own(directory, log, chain_hash, text, key, signature, names)
    else:
        check_previous(directory, names)
    attested = check_attestation(directory, log, key, chain_hash, names)
    whole = attested or log.opening is not None
    if not whole:
        for what in log.uncovered():
            not_checked(what)
        not_checked(Says.NO_FILES)
    session = manifest["session_id"] if log.opening is None else log.opening["session_id"]  # nothing covers another one in the manifest
    print("\nSession:  %s" % shown(session))
    print("Exported: %s" % shown(manifest.get("exported_at")))
    print("Actions:  %d" % log.rows)
    print("Chain:    %s" % chain_hash)
    print("\n" + conclusion(log, key, whole))
    print(recorded_verdict(directory, log, names))
    print_not_proven()


class Usage(Exception):
    """A wrong command line."""


def main(arguments):
    directories, keys = [], []
    while arguments:
        argument = arguments.pop(0)
        if argument == "--key" and arguments:
            keys.append(hex_bytes(arguments.pop(0), 32))
        elif argument in ("-h", "--help"):
            print(__doc__.strip())
            return
        elif argument.startswith("-"):
            raise Usage("unknown option, or --key without a key: %s" % argument)
        else:
            directories.append(Path(argument))
    if len(directories) > 1 or len(keys) > 1:
        raise Usage("more than one directory, or more than one key")
    if None in keys or keys and small_order(keys[0]):
        raise Usage("--key: want the 64 hexadecimal digits of an Ed25519 public key")
    verify((directories + [Path(__file__).resolve().parent])[0], (keys + [None])[0])


def run(arguments):
    """Returns the exit code: whatever keeps this from a judgement is a failure, too."""
    end, detail = "NOT JUDGED: nothing is known about this bundle. For the options: python3 verify.py --help", ""
    try:
        main(arguments)
        return 0
    except Fault as fault:
        why, end, detail = fault.args, Says.NOT_INTACT, fault.detail
    except Usage as usage:
        why = usage.args
    except Exception as e:  # of reading, above all: a directory that is closed, a name that is too long
        why = ["cannot be judged: %s: %s" % (type(e).__name__, e)]
    for text in why:
        print("FAIL  " + printable(text))
    if detail:
        print("      " + printable(detail))
    print("\n" + end)
    if end == Says.NOT_INTACT:
        print(Says.VERDICTLESS)
    print_not_proven()
    return 1


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
