#!/usr/bin/env python3
"""Verifies the AIVS session proof in this directory (draft-stone-aivs-00).

    python3 verify.py [DIRECTORY] [--key PUBLIC_KEY_HEX]

Needs Python 3.6 or newer and nothing else, no network. Prints PASS, FAIL or SKIP
a line; exits 0 when everything holds that can be checked, else 1. Whoever gives
you a bundle also gives you this file: to trust nothing in it, run a verifier that
you got elsewhere.
"""
import hashlib
import json
import sys
from pathlib import Path

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
    """What is wrong, and where."""


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


def whole_number(digits):
    """The number, or None for one that is slow to read and nothing here can be."""
    return int(digits) if len(digits) < 100 else None


DECODER = json.JSONDecoder(object_pairs_hook=unique, parse_constant=no_constant, parse_int=whole_number)
DEPTH = 500  # of objects and arrays in one another; readers end somewhere, each at a depth of its own


def parse_object(text, where):
    try:
        value = DECODER.decode(text)
    except RecursionError:
        raise Fault("%s: not strict JSON: nested deeper than %d levels" % (where, DEPTH))
    except ValueError as e:
        raise Fault("%s: not strict JSON: %s" % (where, e))
    if type(value) is not dict:
        raise Fault("%s: not a JSON object" % where)
    if text.count("{") + text.count("[") > DEPTH and levels(value) > DEPTH:
        raise Fault("%s: not strict JSON: nested deeper than %d levels" % (where, DEPTH))
    if "\\ud" in text or "\\uD" in text:
        whole_characters(value, where)
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
        raise Fault("%s: half of a surrogate pair" % where)


def utf8(data, where):
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as e:
        raise Fault("%s: %s" % (where, e))


def open_plain(directory, name):
    """Opens a file; what is there but is none, such as a pipe, could block or never end."""
    path = directory / name
    try:
        if path.exists() and not path.is_file():
            raise Fault("%s: not a plain file" % name)
        return path.open("rb")
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
        raise Fault("%s: more than %d bytes" % (name, limit))
    return data.decode("latin-1")


def read_json(directory, name, limit=SMALL):
    text = utf8(read(directory, name, limit).encode("latin-1"), name)
    return parse_object(text, name), text


def each_line(lines, name):
    """The lines, none of them too long to hold."""
    for line in iter(lambda: lines.readline(LINE + 1), b""):
        if len(line) > LINE:
            raise Fault("%s: a line is longer than %d bytes" % (name, LINE))
        yield line


def sha256_hex(data):
    return hashlib.sha256(data).hexdigest()


# ---- the log

TYPES = (("id", int), ("session_id", str), ("action_type", str), ("tool_name", str), ("inputs_json", str),
         ("outputs_json", str), ("cost_cents", int), ("error", str), ("timestamp", float), ("prev_hash", str),
         ("row_hash", str))
NAMES = [name for name, _ in TYPES]
OPEN = "plumbline.open."
CONTENT = "aivs.content.sha256."
OPENING = (("session_id", str), ("agent_id", str), ("exported_at", str), ("part", int), ("last_part", bool),
           ("trace_count", int), ("redactions", int), ("generator", str), ("generator_url", str), ("key_id", str),
           ("previous_bundle_hash", str), ("members", list))
OPTIONAL = ("agent_id", "key_id", "previous_bundle_hash")  # absent instead of empty
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
    opening = parse_object(text, "row 1, inputs_json")
    for name, kind in OPENING:
        if type(opening.get(name)) is not kind and not (name in OPTIONAL and name not in opening):
            raise Fault("row 1: its inputs_json has no %s of type %s" % (name, kind.__name__))
    for m in opening["members"]:
        if type(m) is not dict or [(k, type(m[k])) for k in m] != [("name", str), ("bytes", int), ("sha256", str)]:
            raise Fault("row 1: its list of members is malformed")
        if any(part[:1] in ("", ".") or any(c not in NAME for c in part) for part in m["name"].split("/")):
            raise Fault("row 1: lists the unsafe name %r" % m["name"])
    if unix_seconds(opening["exported_at"]) is None:
        raise Fault("row 1: its exported_at is no UTC time to the second")
    if opening["part"] < 1 or opening["trace_count"] < 0 or opening["redactions"] < 0:
        raise Fault("row 1: its part, trace_count or redactions is too small")
    if not is_digest(opening.get("previous_bundle_hash", "0" * 64)):
        raise Fault("row 1: its previous_bundle_hash is no SHA-256")
    ordered = dict((name, opening[name]) for name, _ in OPENING if name in opening)
    if len(ordered) != len(opening) or json.dumps(ordered, separators=(",", ":")) != text:
        raise Fault("row 1: its inputs_json is not in canonical form")
    return opening


class Log:
    """Folds audit_log.jsonl, and what its rows say about traces.jsonl."""

    def __init__(self):
        self.rows, self.prev, self.session = 0, "", None
        self.links, self.content = hashlib.sha256(), hashlib.sha256()
        self.opening = None  # of a bundle in Plumbline's own dialect
        self.blank = False   # an empty line was seen
        self.sealed = 0      # the row of the last content seal
        self.actions = 0     # rows between open and seal
        self.traces = []     # and the trace_sha256 of each, where the bundle carries the traces

    def add(self, line):
        where = "row %d" % (self.rows + 1)
        if not line.strip(b" \t\r\n"):
            self.blank = True
            if self.opening is not None:
                raise Fault("%s: empty line in its place" % where)
            return
        row = parse_object(utf8(line, where), where)
        self.check_fields(row, where)
        preimage = "%d:%s:%s:%s:%d:%r:%s" % (row["id"], row["session_id"], row["action_type"], row["tool_name"],
                                             row["cost_cents"], row["timestamp"], self.prev)
        if sha256_hex(preimage.encode("utf-8")) != row["row_hash"]:
            raise Fault("%s: its hash is not the hash of its fields" % where)
        self.rows += 1
        self.prev = row["row_hash"]
        self.dialect(row, line, where)
        self.links.update(self.prev.encode())
        for name in ("inputs_json", "outputs_json", "error"):
            self.content.update(hashlib.sha256(row[name].encode("utf-8")).digest())

    def check_fields(self, row, where):
        for name, kind in TYPES:
            if type(row.get(name)) is not kind:
                raise Fault("%s: member %s is missing or not of type %s" % (where, name, kind.__name__))
        if row["id"] != self.rows + 1:
            raise Fault("%s: its id is %d: a row was removed, inserted or moved" % (where, row["id"]))
        if self.session is None:
            self.session = row["session_id"]
        if row["session_id"] != self.session:
            raise Fault("%s: its session_id differs from the first row's" % where)
        if ":" in row["session_id"] + row["action_type"] + row["tool_name"]:
            raise Fault("%s: ':' in a hashed field makes its hash ambiguous" % where)
        if not 0 <= row["cost_cents"] < 2**53 or row["timestamp"] - row["timestamp"] != 0:
            raise Fault("%s: cost_cents or timestamp is out of range" % where)
        if row["prev_hash"] != self.prev:
            raise Fault("%s: prev_hash is not the hash of the row before" % where)

    def dialect(self, row, line, where):
        tool = row["tool_name"]
        if self.rows == 1 and row["action_type"] == "open" and tool.startswith(OPEN):
            if tool != OPEN + "1":
                raise Fault("%s: %s is newer than this verifier" % (where, tool))
            self.opening = parse_opening(row["inputs_json"])
            self.exported = row["timestamp"]
            own = (row["outputs_json"], row["error"], row["cost_cents"], row["timestamp"])
            if own != ("{}", "", 0, float(unix_seconds(self.opening["exported_at"]))):
                raise Fault("%s: not in canonical form" % where)
            self.has_traces = any(m["name"] == "traces.jsonl" for m in self.opening["members"])
        if self.opening is not None:
            if self.sealed:
                raise Fault("%s: follows the seal" % where)
            if self.blank or NAMES != list(row) or json.dumps(row).encode() + b"\n" != line:
                raise Fault("%s: not in canonical form" % where)
        if row["action_type"] == "seal" and tool.startswith(CONTENT):
            if tool != CONTENT + self.content.hexdigest():
                raise Fault("%s: inputs, outputs or errors of the rows before are not those sealed" % where)
            own = (row["inputs_json"], row["outputs_json"], row["error"], row["cost_cents"], row["timestamp"])
            if self.opening is not None and own != ("{}", "{}", "", 0, self.exported):
                raise Fault("%s: a seal has no contents of its own, and the open row's time" % where)
            self.sealed = self.rows
        elif self.opening is not None and self.rows > 1:
            self.actions += 1
            if self.has_traces:
                self.traces.append(parse_object(row["inputs_json"], where + ", inputs_json").get("trace_sha256"))

    def chain_hash(self):
        return self.links.hexdigest() if self.rows else sha256_hex(b"empty")


def check_log(directory):
    log = Log()
    with open_plain(directory, "audit_log.jsonl") as lines:
        for line in each_line(lines, "audit_log.jsonl"):
            log.add(line)
    print("PASS  hash chain: %d rows, each linked to the one before" % log.rows)
    return log


# ---- the small files


def check_manifest(directory, log, chain_hash):
    manifest, text = read_json(directory, "manifest.json")
    for name, want in (("chain_hash", chain_hash), ("action_count", log.rows)):
        if type(manifest.get(name)) is not type(want) or manifest[name] != want:
            raise Fault("manifest.json: %s is %r, the log has %r" % (name, manifest.get(name), want))
    if type(manifest.get("session_id")) is not str or log.session not in (None, manifest["session_id"]):
        raise Fault("manifest.json: session_id is %r, the rows have %r" % (manifest.get("session_id"), log.session))
    if log.opening is not None:
        check_own_manifest(manifest, text, log, chain_hash)
    print("PASS  manifest: chain hash, count and session agree with the log")
    return manifest


def check_own_manifest(manifest, text, log, chain_hash):
    o = log.opening
    want = dict([("session_id", log.session), ("exported_at", o["exported_at"]), ("action_count", log.rows),
                 ("chain_hash", chain_hash), ("aivs_version", "1.0"), ("generator", o["generator"]),
                 ("generator_url", o["generator_url"]), ("original_session_id", o["session_id"])])
    for name in ("agent_id", "trace_count", "redactions", "part", "last_part", "previous_bundle_hash", "key_id"):
        if name in o:
            want[name] = o[name]
    for name in want:
        if manifest.get(name) != want[name]:
            raise Fault("manifest.json: %s is not what the open row says" % name)
    if json.dumps(want, indent=2) + "\n" != text:
        raise Fault("manifest.json: not in canonical form")


def public_key(text):
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
        raise Fault("public_key.pem: not an Ed25519 public key")
    if len(found) > 1:
        raise Fault("public_key.pem: two different keys")
    return found.pop()


def bare_key(text):
    """The key alone: its 32 bytes as they are, in digits, or in base64."""
    bare = text.strip(" \t\r\n")
    if len(text) == 32:
        return text.encode("latin-1")
    if len(bare) == 64 and hex_bytes(bare, 32) is None:
        raise Fault("public_key.pem: not an Ed25519 public key")
    return hex_bytes(bare, 32) or base64_bytes(bare, 32)


def signature_lines(directory):
    if not (directory / "session_sig.txt").exists():
        return {}
    lines = {}
    for line in read(directory, "session_sig.txt").split("\n"):
        name, colon, value = line.partition(":")
        if colon and not line.startswith("#"):
            if name in lines:
                raise Fault("session_sig.txt: two lines %s" % name)
            lines[name] = value.strip(" \t\r")
    return lines


def check_signature(directory, log, chain_hash, pinned):
    lines = signature_lines(directory)
    if "chain_hash" in lines and lines["chain_hash"] != chain_hash:
        raise Fault("session_sig.txt: chain_hash is not the hash of this log")
    if "signature" not in lines:
        if pinned is not None or (log.opening and "key_id" in log.opening):
            raise Fault("session_sig.txt: there is no signature, and one is required")
        check_forms(directory, log, chain_hash, None, None)
        print("SKIP  signature: the bundle is not signed; anyone can have made it")
        return None
    if "chain_hash" not in lines:
        raise Fault("session_sig.txt: there is a signature but no chain_hash")
    key = public_key(read(directory, "public_key.pem"))
    if key is None:
        raise Fault("public_key.pem: there is a signature but no key")
    signature = base64_bytes(lines["signature"], 64)
    if signature is None:
        raise Fault("session_sig.txt: the signature is not the base64 of 64 bytes")
    if not signature_holds(key, signature, chain_hash.encode()):
        raise Fault("session_sig.txt: the signature is not by the key in public_key.pem over this log")
    if pinned is not None and key != pinned:
        raise Fault("public_key.pem: signed by %s, not by the key given" % key.hex())
    check_forms(directory, log, chain_hash, key, lines["signature"])
    print("PASS  signature: Ed25519, by %s" % key.hex())
    if pinned is None:
        print("SKIP  key: the bundle itself names it; compare it with one you got elsewhere, or give --key")
    return key


def check_forms(directory, log, chain_hash, key, signature):
    """A bundle of our own has its two signature files in one form only."""
    if log.opening is None:
        return
    if signature is None:
        signed, pem = "# Ed25519 signing not available\n", "# No signing key configured\n"
    else:
        signed = "signature:%s\n" % signature
        body = "".join(read(directory, "public_key.pem").split("\n")[1:2])
        if base64_bytes(body, 44) is None:
            raise Fault("public_key.pem: not in canonical form")
        pem = "-----BEGIN PUBLIC KEY-----\n%s\n-----END PUBLIC KEY-----\n# Ed25519 public key: %s\n" % (body, key.hex())
        if log.opening.get("key_id") != sha256_hex(key)[:16]:
            raise Fault("row 1: its key_id is not that of public_key.pem")
    if read(directory, "session_sig.txt") != "chain_hash:%s\n" % chain_hash + signed:
        raise Fault("session_sig.txt: not in canonical form")
    if read(directory, "public_key.pem") != pem:
        raise Fault("public_key.pem: not in canonical form")


# ---- the attestation: a DSSE envelope around an in-toto statement

ATTESTATION = "attestation.dsse.json"
PAYLOAD = "application/vnd.in-toto+json"
STATEMENT = "https://in-toto.io/Statement/v1"
FOLDER = "session_proof/"
SIGNATURES = 100  # are tried; each takes some time


def check_attestation(directory, log, key):
    """Checks that the same key signed for every other file."""
    if not (directory / ATTESTATION).exists():
        if log.opening is not None and key is not None:
            raise Fault("%s: missing, though the bundle is signed" % ATTESTATION)
        if log.opening is None:
            print("SKIP  members: no open row and no attestation, so files other than the log are covered by nothing")
        return
    if key is None:
        raise Fault("%s: the bundle has no valid signature of the log beside it" % ATTESTATION)
    attested = subjects(envelope_payload(directory, key, log.opening is not None))
    for path in sorted(directory.rglob("*")):
        name = path.relative_to(directory).as_posix()
        if path.is_dir() or name == ATTESTATION:
            continue
        if attested.pop(name, None) != file_digest(directory, name)[0]:
            raise Fault("%s: not the file that was attested" % name)
    if attested:
        raise Fault("%s: attests the missing file %r" % (ATTESTATION, sorted(attested)[0]))
    print("PASS  attestation: every file is signed for by the same key")


def either_alphabet(text):
    """Base64 in the standard alphabet: DSSE allows the other one, too."""
    return text.replace("-", "+").replace("_", "/") if type(text) is str else ""


def envelope_payload(directory, key, own):
    envelope, text = read_json(directory, ATTESTATION, SMALL + FILES)
    payload = base64_any(either_alphabet(envelope.get("payload")))
    signatures = envelope.get("signatures")
    if payload is None or envelope.get("payloadType") != PAYLOAD or type(signatures) is not list:
        raise Fault("%s: not an envelope of %s" % (ATTESTATION, PAYLOAD))
    if len(signatures) > SIGNATURES:
        raise Fault("%s: more than %d signatures" % (ATTESTATION, SIGNATURES))
    message = b"DSSEv1 %d %s %d %s" % (len(PAYLOAD), PAYLOAD.encode(), len(payload), payload)
    for entry in signatures:
        sig = entry.get("sig") if type(entry) is dict else None
        signature = base64_bytes(either_alphabet(sig), 64)
        if signature is not None and signature_holds(key, signature, message):
            form = {"payloadType": PAYLOAD, "payload": envelope["payload"], "signatures": [{"keyid": sha256_hex(key)[:16], "sig": sig}]}
            if own and json.dumps(form, separators=(",", ":")) + "\n" != text:
                raise Fault("%s: not in canonical form" % ATTESTATION)
            return payload
    raise Fault("%s: no signature in it is by the key in public_key.pem" % ATTESTATION)


def subjects(payload):
    statement = parse_object(utf8(payload, ATTESTATION), ATTESTATION)
    if statement.get("_type") != STATEMENT or type(statement.get("subject")) is not list:
        raise Fault("%s: its statement is not an in-toto statement" % ATTESTATION)
    attested = {}
    for subject in statement["subject"]:
        digest = subject.get("digest") if type(subject) is dict else None
        if type(digest) is not dict or type(subject.get("name")) is not str:
            raise Fault("%s: its list of files is malformed" % ATTESTATION)
        name = subject["name"][len(FOLDER):] if subject["name"].startswith(FOLDER) else subject["name"]
        if name in attested:
            raise Fault("%s: attests %r twice" % (ATTESTATION, name))
        attested[name] = digest.get("sha256")
    return attested


def file_digest(directory, name):
    """The SHA-256 and the size of a file."""
    digest, size = hashlib.sha256(), 0
    with open_plain(directory, name) as f:
        for block in iter(lambda: f.read(1 << 20), b""):
            digest.update(block)
            size += len(block)
    return digest.hexdigest(), size


# ---- the members that the open row lists


def check_members(directory, log):
    if log.opening is None:
        check_previous(directory)
        if log.sealed:
            print("PASS  contents: inputs, outputs and errors are sealed by row %d" % log.sealed)
        else:
            print("SKIP  contents: no seal row, so inputs, outputs and errors are covered by nothing")
        return
    if log.sealed != log.rows:
        raise Fault("row %d: the log does not end with a seal" % log.rows)
    print("PASS  contents: inputs, outputs and errors are sealed by row %d" % log.sealed)
    if log.opening["session_id"].replace("%", "%25").replace(":", "%3A") != log.session:
        raise Fault("row 1: its session_id is not the session's")
    listed = {}
    for member in log.opening["members"]:
        if member["name"] in listed:
            raise Fault("row 1: lists %s twice" % member["name"])
        listed[member["name"]] = member
    check_files(directory, log, listed)
    for name in sorted(listed):
        check_member(directory, listed[name])
    print("PASS  members: %d files are those that the open row lists" % len(listed))
    check_traces(directory, log, "traces.jsonl" in listed)


def check_previous(directory):
    if (directory / "previous_bundle_hash.txt").exists():
        digest = read(directory, "previous_bundle_hash.txt").strip(" \t\r\n")
        if not is_digest(digest):
            raise Fault("previous_bundle_hash.txt: not the SHA-256 of a bundle in 64 lower-case hexadecimal digits")


def check_files(directory, log, listed):
    """Nothing but the draft's files and those listed."""
    expected = set(listed) | {"audit_log.jsonl", "manifest.json", "public_key.pem", "session_sig.txt", "verify.py", ATTESTATION}
    previous = log.opening.get("previous_bundle_hash")
    if previous is not None:
        expected.add("previous_bundle_hash.txt")
        if read(directory, "previous_bundle_hash.txt") != previous:
            raise Fault("previous_bundle_hash.txt: not what the open row says")
    for path in sorted(directory.rglob("*")):
        name = path.relative_to(directory).as_posix()
        if path.is_symlink() or (name not in expected and not path.is_dir()):
            raise Fault("%s: not a file of this bundle" % name)


def check_member(directory, member):
    if file_digest(directory, member["name"]) != (member["sha256"], member["bytes"]):
        raise Fault("%s: not the file that the open row lists" % member["name"])


def check_traces(directory, log, present):
    if log.opening["trace_count"] != log.actions:
        raise Fault("row 1: its trace_count is %d, there are %d rows" % (log.opening["trace_count"], log.actions))
    if not present:
        print("SKIP  traces: the bundle carries none")
        return
    with open_plain(directory, "traces.jsonl") as lines:
        for n, want in enumerate(log.traces, 1):
            line = lines.readline()
            if not line.endswith(b"\n") or sha256_hex(line[:-1]) != want:
                raise Fault("row %d: its trace_sha256 is not that of line %d of traces.jsonl" % (n + 1, n))
        if lines.read(1):
            raise Fault("traces.jsonl: more lines than rows")
    print("PASS  traces: %d lines, one for each row" % len(log.traces))


NOT_PROVEN = """
Not proven by this (draft section 8.2, and beyond):
  truthfulness  that what the rows say really happened, or that every action was recorded
  time          when it happened: the times are the sender's own
  key           whose key signed: the bundle only names it
Verified is not safe. The limits of the records themselves (AAP section 10.1):
  AAP does NOT ensure alignment - it provides visibility.
  Verified does NOT equal safe.
  AP-Trace is sampled, not complete.
  Value coherence is relative to declared values.
  Tested on transformer-based agents; unknown unknowns exist for other substrates.
"""


def verify(directory, pinned):
    log = check_log(directory)
    chain_hash = log.chain_hash()
    manifest = check_manifest(directory, log, chain_hash)
    key = check_signature(directory, log, chain_hash, pinned)
    check_members(directory, log)
    check_attestation(directory, log, key)
    print("\nSession:  %s" % ascii(manifest.get("original_session_id", manifest["session_id"])))
    print("Exported: %s" % ascii(manifest.get("exported_at")))
    print("Actions:  %d" % log.rows)
    print("Chain:    %s" % chain_hash)
    print("\nVERIFIED: the log is whole and unchanged since it was made.")
    print(NOT_PROVEN)


USAGE = "usage: python3 verify.py [DIRECTORY] [--key PUBLIC_KEY_HEX]"


def main(arguments):
    directories, keys = [], []
    while arguments:
        argument = arguments.pop(0)
        if argument == "--key" and arguments:
            keys.append(hex_bytes(arguments.pop(0), 32))
        elif argument.startswith("-"):
            raise Fault(USAGE)
        else:
            directories.append(Path(argument))
    if len(directories) > 1 or len(keys) > 1:
        raise Fault(USAGE)
    if None in keys:
        raise Fault("--key: want the 64 hexadecimal digits of an Ed25519 public key")
    verify((directories + [Path(__file__).resolve().parent])[0], (keys + [None])[0])


def run(arguments):
    """Returns the exit code: whatever keeps this from a judgement is a failure, too."""
    try:
        main(arguments)
        return 0
    except Fault as fault:
        why = str(fault)
    except Exception as e:  # of reading, above all: a directory that is closed, a name that is too long
        why = "cannot be judged: %s: %s" % (type(e).__name__, e)
    print("FAIL  " + ascii(why)[1:-1])
    print(NOT_PROVEN)
    return 1


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
