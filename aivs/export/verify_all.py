#!/usr/bin/env python3
"""Verifies the exported bundles in this directory.

    python3 -I verify_all.py [DIRECTORY] [--key PUBLIC_KEY_HEX]...

DIRECTORY is the unpacked export; by default the one of this file. With --key each
bundle must be signed by that key, or by a session key that it leads to in keys.jsonl.

Needs Python 3.6 or newer and nothing else, no network. Prints a line for each bundle,
then what is wrong between them and what is missing. Exits 0 when all bundles are
intact, their links agree, the index agrees with all of it and nothing of the range is
known to be missing, else 1.
"""
import contextlib
import datetime
import errno
import gzip
import hashlib
import io
import json
import math
import os
import sys
import tarfile
import tempfile
import types
import zlib
from pathlib import Path

BUNDLES = "bundles"
MOST = 32 << 30  # bytes that one bundle may unpack to
VERIFIER = ""  # the SHA-256 of verify.py; the export writes it here


def load_verifier(directory):
    """The functions of verify.py, without running it; None if it is another one than that of the export.

    An import would prefer compiled code that lies beside it.
    """
    path = directory / "verify.py"
    code = path.read_bytes()
    if VERIFIER not in ("", hashlib.sha256(code).hexdigest()):
        return None
    module = types.ModuleType("verify")
    module.__file__ = str(path)
    exec(compile(code, str(path), "exec"), module.__dict__)
    return module


class Here(Exception):
    """What keeps this computer from a judgement, and is no fault of a bundle."""


class Unzipped:
    """The archive within a bundle. A header that claims to be long is not read into memory."""

    def __init__(self, path):
        self.stream = gzip.open(str(path), "rb")
        self.seek, self.tell, self.close = self.stream.seek, self.stream.tell, self.stream.close

    def read(self, size):
        if not 0 <= size <= 1 << 20:
            raise tarfile.ReadError("a header of %d bytes" % size)
        return self.stream.read(size)


NAMES = (errno.ENAMETOOLONG, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.EINVAL)  # of files: faults of the archive


def unpacked(bundle, directory, verify):
    """The directory of a bundle's files, which it unpacks."""
    try:
        with contextlib.closing(Unzipped(bundle)) as stream:
            return unpack(stream, directory, verify)
    except OSError as e:
        if e.errno is not None and e.errno not in NAMES:
            raise Here("cannot be unpacked on this computer: %s" % e.strerror)
        raise verify.Fault("archive: cannot be unpacked", detail=e)
    except (tarfile.TarError, EOFError, ValueError, zlib.error) as e:
        raise verify.Fault("archive: cannot be unpacked", detail=e)


def unpack(stream, directory, verify):
    """Unpacks the files of a bundle, none of them outside the directory."""
    seen, entries, total = set(), 0, 0
    with tarfile.open(fileobj=stream, mode="r:") as archive:
        for entry in archive:
            entries += 1
            if entries > 10000:
                raise verify.Fault("archive: " + verify.Says.TOO_MANY % 10000)
            name = entry.name[2:] if entry.name.startswith("./") else entry.name
            if archive.pax_headers or entry.isdir() and entry.size:  # readers disagree what such an entry holds
                raise verify.Fault("archive: " + verify.Says.NOT_PLAIN)
            if entry.isdir():
                continue
            parts = name.split("/")
            if entry.type not in (tarfile.REGTYPE, tarfile.AREGTYPE) or entry.sparse is not None or parts[0] != "session_proof" or len(parts) < 2:
                raise verify.Fault("archive: " + verify.Says.NOT_PLAIN)
            if any(part in ("", ".", "..") or "\\" in part or "\0" in part for part in parts):
                raise verify.Fault("archive: " + verify.Says.NOT_PLAIN)
            if verify.folded(name) in seen:
                raise verify.Fault("archive: " + verify.Says.NAMES_TWICE)
            seen.add(verify.folded(name))
            total += max(entry.size, 0)
            if total > MOST:
                raise verify.Fault("archive: " + verify.Says.TOO_LARGE % MOST)
            target = directory.joinpath(*parts)
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("xb") as out:
                source = archive.extractfile(entry)
                for block in iter(lambda: source.read(1 << 20), b""):
                    out.write(block)
        stream.seek(archive.offset)  # tarfile takes a bad header for the end
        for block in iter(lambda: stream.read(1 << 20), b""):
            total += len(block)
            if total > MOST or block.strip(b"\0"):
                raise verify.Fault("archive: after its last entry: data that is not padding")
    return directory / "session_proof"


# ---- the key list: each line is signed by the key before the new one, and by the new one

LIST = "plumbline-keys/1"
LONGEST_LIST = 32 << 20  # bytes
PURPOSES = ("session", "micro", "handshake", "log")
LINE_MEMBERS = ["type", "version", "issued_at", "keys", "signatures"]
KEY_MEMBERS = ["key_id", "public_key", "purpose", "not_before", "not_after"]  # the last two may be absent


class KeyList:
    """The session keys of keys.jsonl, once every line was checked by the rules of `plumbline bundle verify`."""

    def __init__(self, path, verify):
        self.keys, self.issued, self.verify = [], 0, verify
        number = 0
        if not path.exists():
            return
        if path.stat().st_size > LONGEST_LIST:
            raise verify.Fault("keys.jsonl: " + verify.Says.TOO_LARGE % LONGEST_LIST)
        with path.open("rb") as lines:
            for line in lines:
                number += 1
                try:
                    self.add(verify.utf8(line, "keys.jsonl"), number)
                except (verify.Fault, LookupError, TypeError, ValueError, AttributeError) as e:
                    raise verify.Fault("keys.jsonl: line %d is not a line of a key list: %s" % (number, e))
        if number == 0:
            raise verify.Fault("keys.jsonl: it is empty")

    def add(self, line, number):
        entry = self.verify.parse_object(line, "keys.jsonl")
        self.check_form(entry, line)
        keys, signatures = entry["keys"], entry.pop("signatures")
        if entry["type"] != LIST or entry["version"] != number or len(keys) != len(self.keys) + 1:
            raise ValueError("lines are missing or out of order")
        issued = self.seconds(entry["issued_at"])
        if issued < self.issued:
            raise ValueError("it was issued before the line above it")
        for key in keys:
            self.check_key(key)
        if len(set(key["key_id"] for key in keys)) != len(keys):
            raise ValueError("a key is listed twice")
        new = keys[-1]
        for key, before in zip(keys, self.keys):
            ended = key["purpose"] == new["purpose"] and "not_after" in key and key["not_after"] <= before.get("not_after", key["not_after"])
            if key != before and not (ended and dict(before, not_after=key["not_after"]) == key):
                raise ValueError("an earlier key was changed")
        previous = [key for key in keys[:-1] if key["purpose"] == new["purpose"]][-1:]
        if previous and ("not_after" not in previous[0] or "not_before" not in new):
            raise ValueError("a key that has a successor has no end, or the successor no beginning")
        self.check_signed(entry, signatures, previous + [new])
        self.keys, self.issued = keys, issued

    def check_form(self, entry, line):
        """A line has one form only, so that every reader reads the same."""
        form = json.dumps(entry, separators=(",", ":")) + "\n"
        if form != line or list(entry) != LINE_MEMBERS or type(entry["version"]) is not int:
            raise ValueError("it is not written as a key list is, or cut off")
        for key in entry["keys"]:
            if list(key) != [name for name in KEY_MEMBERS if name in key or name in KEY_MEMBERS[:3]]:
                raise ValueError("it is not written as a key list is")

    def check_key(self, key):
        public = self.verify.hex_bytes(key["public_key"], 32)
        if public is None or public.hex() != key["public_key"] or self.verify.small_order(public) or key["key_id"] != self.verify.sha256_hex(public)[:16]:
            raise ValueError("a key is malformed")
        if key["purpose"] not in PURPOSES:
            raise ValueError("a key has an unknown purpose")
        period = [self.seconds(key[name]) for name in KEY_MEMBERS[3:] if name in key]
        if sorted(period) != period:
            raise ValueError("a key ends before it begins")

    def seconds(self, text):
        """The time, which is in UTC, to the second."""
        at = self.verify.unix_seconds(text)
        if at is None:
            raise ValueError("a time is not written as YYYY-MM-DDTHH:MM:SSZ")
        return at

    def check_signed(self, entry, signatures, signers):
        message = (LIST + "\n" + json.dumps(entry, sort_keys=True, separators=(",", ":"))).encode()
        if len(signatures) != len(signers):
            raise ValueError("signatures are missing")
        for signer, signature in zip(signers, signatures):
            value = self.verify.base64_bytes(signature["value"], 64)
            known = list(signature) == ["key_id", "value"] and signature["key_id"] == signer["key_id"]
            if not known or value is None or not self.verify.signature_holds(self.verify.hex_bytes(signer["public_key"], 32), value, message):
                raise ValueError("a signature is wrong")

    def find(self, key):
        """The entry of a session key, or None."""
        found = [k for k in self.keys if k["purpose"] == "session" and key is not None and k["public_key"] == key.hex()]
        return found[0] if found else None

    def leads(self, pins):
        """Whether a pinned key is on the list, which then says what the pinned keys lead to."""
        return any(self.find(pin) is not None for pin in pins)

    def refuses(self, key, exported_at):
        """Why a key of the list may not have signed a bundle with this export time, in the words of `plumbline bundle verify`; None if it may."""
        at, k = self.verify.moment(exported_at if type(exported_at) is str else ""), self.find(key)
        if at is None:
            return "manifest.json: exported_at is not a time, so it is unknown whether the key was valid then"
        named = (k["key_id"], k.get("not_before"), k.get("not_after"))
        dated = "but this is dated %s" % text_of(math.floor(at) * 10**6)
        if named[1] is not None and at < self.seconds(named[1]):
            return "public_key.pem: it was not valid yet: session key %s is valid from %s, %s" % (named[0], named[1], dated)
        if named[2] is not None and at > self.seconds(named[2]):
            return "public_key.pem: it was no longer valid: session key %s was valid until %s, %s" % (named[0], named[2], dated)
        return None


# ---- one bundle


class Result:
    """What the verification of one bundle says."""

    def __init__(self, name):
        self.name, self.faults, self.detail, self.lines = name, [], "", []
        self.judged = True
        self.opening, self.digest, self.key = None, "", ""
        self.rows, self.first, self.last = 0, None, None  # times in microseconds since 1970


def judge(verify, directory, name, pins, keys):
    result = Result(name)
    try:
        result.digest = verify.file_digest(directory, name)[0]
        with tempfile.TemporaryDirectory() as place:
            proof = unpacked(directory / name, Path(place), verify)
            said = io.StringIO()
            with contextlib.redirect_stdout(said):
                key, refusal = expected(verify, proof, pins, keys)
                verify.verify(proof, key)
                if refusal is not None:
                    raise verify.Fault(*verify.changed_rows(proof, verify.check_log(proof)) + [refusal])
            result.lines = said.getvalue().split("\n")
            signed = [line for line in result.lines if line.startswith("PASS  " + verify.Says.PASS_SIGNATURE % "")]
            result.key = signed[0].split()[-1] if signed else ""
            read_log(result, proof, verify)
    except verify.Fault as fault:
        result.faults, result.detail = list(fault.args), fault.detail
    except Here as here:
        result.faults, result.judged = [str(here)], False
    except Exception as e:  # nothing that is in one bundle keeps the others from being verified
        result.faults, result.judged = ["cannot be judged: %s: %s" % (type(e).__name__, e)], False
    return result


def expected(verify, proof, pins, keys):
    """The key that must have signed a bundle, and why it may not have. If a key that was given is on the key list, the list decides."""
    if not pins:
        return None, None
    manifest = verify.read_json(proof, "manifest.json")[0]
    key = verify.public_key(verify.read(proof, "public_key.pem"))
    if not keys.leads(pins):
        return (key if key in pins else pins[0]), None
    if keys.find(key) is not None:
        return key, keys.refuses(key, manifest.get("exported_at"))
    listed = [pin for pin in pins if keys.find(pin) is not None]
    return listed[0], None  # which is another key


def read_log(result, proof, verify):
    """Reads from the log of an intact bundle what the index repeats."""
    times, before = [], None
    with (proof / "audit_log.jsonl").open("rb") as lines:
        for line in lines:
            row = json.loads(line.decode("utf-8")) if line.strip() else None
            if row is None:
                continue
            if result.rows == 0 and row["action_type"] == "open" and row["tool_name"].startswith(verify.OPEN):
                result.opening = json.loads(row["inputs_json"])
            elif before is not None and 0 <= before < 253402300800:  # the last row is the seal
                times = [min(times[:1] + [before]), max(times[1:] + [before])]
            before = row["timestamp"] if result.rows > 0 else None
            result.rows += 1
    if result.opening is not None:
        times = times or [verify.unix_seconds(result.opening["exported_at"])] * 2
        result.first, result.last = [math.floor(at * 1e6 + 0.5) for at in times]


# ---- all of them


def session_of(result):
    return "session %s of agent %s" % (json.dumps(result.opening["session_id"]), json.dumps(result.opening.get("agent_id", "")))


def same_archive(directory, *names):
    """Whether bundles are one archive, perhaps compressed in several ways."""
    digests = set()
    for name in names:
        digest = hashlib.sha256()
        with contextlib.closing(Unzipped(directory / name)) as stream:
            for block in iter(lambda: stream.read(1 << 20), b""):
                digest.update(block)
        digests.add(digest.digest())
    return len(digests) == 1


def links(results, directory):
    """What is wrong between the parts of each session, the sessions that are open, and late parts."""
    wrong, still_open, late, sessions = [], [], [], {}
    for r in results:
        if r.opening is not None and not r.faults:
            sessions.setdefault((r.opening.get("agent_id", ""), r.opening["session_id"]), []).append(r)
    for _, parts in sorted(sessions.items()):
        parts.sort(key=lambda r: (r.opening["part"], r.name))
        where = session_of(parts[0])
        for before, this in zip([None] + parts, parts):
            part = before.opening["part"] if before else 0
            if this.opening["part"] == part:
                if this.digest != before.digest and not same_archive(directory, before.name, this.name):
                    wrong.append("%s: part %d was sealed twice: %s and %s" % (where, part, before.name, this.name))
                continue
            names, follows = this.opening.get("previous_bundle_hash", ""), before.digest if before else ""
            if this.opening["part"] != part + 1:
                wrong.append("%s: part %d is missing" % (where, part + 1))
            elif names != follows and not any(names == r.digest for r in parts if r.opening["part"] == part):
                wrong.append('%s: its previous bundle is "%s", the part before has "%s"' % (this.name, names, follows))
            elif before and this.opening["exported_at"] < before.opening["exported_at"]:
                wrong.append("%s: exported at %s, before part %d (%s)" % (this.name, this.opening["exported_at"], part, before.opening["exported_at"]))
            if before and before.opening["last_part"]:
                late.append("%s: part %d comes after part %d, which is marked as the last" % (where, this.opening["part"], part))
        if not parts[-1].opening["last_part"]:
            still_open.append(where)
    return wrong, still_open, late


def files_of(directory):
    """The names of all plain files of the export, and of what is neither a plain file nor a directory."""
    names, odd = [], []
    for folder, folders, files in os.walk(str(directory)):
        for name in folders + files:
            path = Path(folder) / name
            if path.is_symlink() or not (path.is_file() or path.is_dir()):
                odd.append(path.relative_to(directory).as_posix())
            elif not path.is_dir():
                names.append(path.relative_to(directory).as_posix())
    return sorted(names), sorted(odd)


def read_index(directory, verify):
    """index.json and its bytes, with the members that are used here."""
    data = (directory / "index.json").read_bytes()
    index = verify.parse_object(verify.utf8(data, "index.json"), "index.json")
    if index.get("type") != "plumbline-export/1":
        raise verify.Fault("index.json: not an index of an export, or one of a newer version than this program knows")
    entries = (("bundles", ("file", "sha256", "agent_id", "session_id")), ("files", ("file", "sha256")),
               ("faults_between", ("where", "message")), ("missing", ("agent_id", "session_id", "why")))
    right = type(index.get("range")) is dict and all(type(index.get(name)) is list for name in ("open", "late"))
    for name, members in entries:
        right = right and type(index.get(name)) is list and all(
            type(entry) is dict and all(type(entry.get(member)) is str for member in members) for entry in index[name])
    if not right:
        raise verify.Fault("index.json: not an index of an export: members are missing or of the wrong type")
    return index, data


def compare(index, results, files, directory, verify):
    """Where the index disagrees with the bundles, with the other files, and with itself."""
    listed = {}
    for entry in index["bundles"] + index["files"]:
        if entry["file"] in listed:
            yield "%s: the index lists it twice" % entry["file"]
        listed[entry["file"]] = entry
    found = dict((r.name, r) for r in results)
    for name, entry in sorted(listed.items()):
        if name not in files:
            yield "%s: the index lists it, and it is not here" % name
        elif (found[name].digest if name in found else verify.file_digest(directory, name)[0]) != entry["sha256"]:
            yield "%s: its SHA-256 is not the one in the index" % name
        elif name in found:
            for problem in differences(index, entry, found[name], verify):
                yield problem
    for r in results:
        if r.name not in listed:
            yield "%s: it is here, and the index does not list it" % r.name
    if index.get("summary") != summary(index):
        yield "index.json: its summary does not agree with what it lists"


def differences(index, entry, r, verify):
    """Where the index disagrees with one bundle, whose bytes are those that it means."""
    if not entry.get("intact"):
        faults = entry.get("faults") if type(entry.get("faults")) is list else []
        for fault in [f for f in faults if type(f) is dict] or [{}]:
            said = "%s: %s" % (fault.get("where", "archive"), fault.get("message", "not intact"))
            if said not in r.faults:
                yield "index: %s: %s" % (r.name, said)
        return
    if r.faults:
        return
    about, verdict = conclusion_of(r, verify)
    want = {"conclusion": about, "public_key": r.key, "rows": r.rows, "verdict": verdict}
    said = dict((name, entry.get(name)) for name in want)
    said["verdict"] = verdict_of(entry, verify)
    o = r.opening
    if o is not None:
        times = [text_of(r.first), text_of(r.last)]
        want.update(agent_id=o.get("agent_id", ""), session_id=o["session_id"], part=o["part"], last_part=o["last_part"], traces=o["trace_count"],
                    sealed_at=o["exported_at"], first=times[0], last=times[1], in_range=holds(index["range"], r, verify))
        said.update((name, entry.get(name)) for name in want if name not in said)
        of = index["range"].get("agent_id")
        if of and o.get("agent_id") != of:
            yield "%s: it is of agent %s, and this export is of agent %s" % (r.name, json.dumps(o.get("agent_id", "")), json.dumps(of))
    wrong = sorted(name for name in want if said[name] != want[name] or type(said[name]) is not type(want[name]))
    if wrong:
        yield "%s: the index says something else about it than the bundle (%s)" % (r.name, ", ".join(wrong))


def holds(bounds, r, verify):
    """Whether a decision of a bundle is in the range of the export."""
    start, end = [verify.moment(bounds[name]) if type(bounds.get(name)) is str else None for name in ("from", "to")]
    return (end is None or r.first < math.floor(end * 1e6 + 0.5)) and (start is None or r.last >= math.floor(start * 1e6 + 0.5))


def text_of(micros):
    """A time as the index writes it."""
    text = (datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=micros)).isoformat()
    return (text.rstrip("0") if "." in text else text) + "Z"


def verdict_of(entry, verify):
    """The sentence for the verdict that the index repeats."""
    v, over = entry.get("verdict"), entry.get("verdict_over")
    if type(over) is int and over > 0 and v is None:
        return verify.Says.LONG_VERDICT % over
    if type(v) is not dict:
        return verify.Says.NO_VERDICT
    counts = [verify.counted(v.get(name), what) if type(v.get(name)) is int else "" for name, what in (("violations", "violation"), ("findings", "finding"))]
    return verify.Says.VERDICT % (str(v.get("recommended_action")).upper(), counts[0], counts[1])


def summary(index):
    """The counts of what the index lists."""
    good = [e for e in index["bundles"] if e.get("intact") is True]
    verdicts, sessions = {}, set()
    for e in good:
        if type(e.get("verdict")) is dict:
            action = str(e["verdict"].get("recommended_action"))
            verdicts[action] = verdicts.get(action, 0) + 1
        if e.get("part"):
            sessions.add((e["agent_id"], e["session_id"]))
    return {"bundles": len(index["bundles"]), "intact": len(good), "not_intact": len(index["bundles"]) - len(good), "sessions": len(sessions),
            "outside": sum(1 for e in index["bundles"] if e.get("in_range") is not True),
            "traces": sum(e["traces"] for e in good if type(e.get("traces")) is int), "verdicts": verdicts, "missing": len(index["missing"])}


def check_signature(directory, files, data, pins, keys, verify):
    """What is known of who signed the index: a line, and whether it is a fault."""
    if "index.sig" not in files:
        return "SKIP  NOT CHECKED: whether the index names everything. It is not signed: whoever passed it on can have left out bundles, and their lines of the index.", False
    signed = verify.parse_object(verify.utf8((directory / "index.sig").read_bytes(), "index.sig"), "index.sig")
    key = verify.hex_bytes(str(signed.get("public_key")), 32)
    signature = verify.base64_bytes(str(signed.get("signature")), 64)
    if key is None or signature is None or verify.small_order(key) or not verify.signature_holds(key, signature, b"plumbline-export/1\n" + data):
        return "FAIL  index.sig: the index was changed after it was signed, or this is no signature of it", True
    if pins and key not in pins and not (keys.leads(pins) and keys.find(key) is not None):
        return "FAIL  index.sig: " + verify.Says.STRANGER % key.hex(), True
    return "PASS  index: it is as it was when the holder of the key %s signed it" % key.hex(), False


def conclusion_of(result, verify):
    """The two sentences about the bundle and about the agent."""
    if not result.judged:
        return "NOT JUDGED: nothing is known about this bundle.", "Verdict recorded inside: not read."
    if result.faults:
        return verify.Says.NOT_INTACT, verify.Says.VERDICTLESS
    at = [i for i, line in enumerate(result.lines) if line.startswith("INTACT")][0]
    return result.lines[at], result.lines[at + 1]


def run(arguments):
    directory, digits = Path(__file__).resolve().parent, []
    while arguments:
        argument = arguments.pop(0)
        if argument == "--key" and arguments:
            digits.append(arguments.pop(0))
        elif argument in ("-h", "--help"):
            print(__doc__.strip())
            return 0
        elif argument.startswith("-"):
            print("unknown option, or --key without a key: %s" % argument)
            return 1
        else:
            directory = Path(argument)
    verify = load_verifier(Path(__file__).resolve().parent)
    if verify is None:
        print("FAIL  verify.py: not the one that this verify_all.py was made with. Nothing was verified.")
        return 1
    pins = [verify.hex_bytes(text, 32) for text in digits]
    if None in pins or any(verify.small_order(pin) for pin in pins):
        print("--key: want the 64 hexadecimal digits of an Ed25519 public key")
        return 1
    return verify_all(directory, pins, verify)


def verify_all(directory, pins, verify):
    say = lambda text: print(verify.printable(text))
    try:
        files, odd = files_of(directory)
        index, data = read_index(directory, verify)
        keys = KeyList(directory / "keys.jsonl", verify)
        signer, unsigned = check_signature(directory, files, data, pins, keys, verify)
    except (verify.Fault, OSError) as e:
        say("FAIL  %s" % e)
        return 1
    names = [name for name in files if name.startswith(BUNDLES + "/") and name.lower().endswith(".tar.gz")]
    results, bad = [], 0
    for name in names:
        result = judge(verify, directory, name, pins, keys)
        about, verdict = conclusion_of(result, verify)
        say("%s  %s  %s" % (about.split(":")[0], name, verdict))
        for fault in result.faults:
            say("      FAIL  " + fault)
        if result.detail:
            say("            " + result.detail)
        for line in result.lines if not result.faults else []:
            if line.startswith(verify.Says.SKIP % "") and line != verify.Says.SKIP % verify.Says.NO_SIGNER:
                say("      " + line)
        bad += bool(result.faults)
        results.append(result)
    wrong, still_open, late = links(results, directory)
    problems = ["%s: %s" % (name, verify.Says.NOT_PLAIN) for name in odd] + list(compare(index, results, set(files), directory, verify)) + wrong
    stated = ["%s: %s" % (fault["where"], fault["message"]) for fault in index["faults_between"]]
    problems += ["index: " + fault for fault in stated if fault not in wrong]
    problems += ["%s: its last part is not here, and the index does not say so" % where for where in still_open if where not in index["open"]]
    for problem in problems:
        say("FAIL  " + problem)
    for text in late:
        say("LATE  " + text)
    for where in still_open:
        say("OPEN  %s: its last part is not here, or is not sealed yet" % where)
    for m in index["missing"]:
        say("MISSING  agent %s, session %s: %s" % (json.dumps(m["agent_id"]), json.dumps(m["session_id"]), m["why"]))
    known = set(entry["file"] for entry in index["bundles"] + index["files"]) | {"index.json", "index.sig"}
    for name in [name for name in files if name not in known and name not in names]:
        say("EXTRA  %s: it is here, and is no part of this export. Do not rely on it." % name)
    say(signer)
    if index.get("missing_known") is not True:
        say("SKIP  NOT CHECKED: sessions that are held or not sealed yet. This archive was made from a directory of bundles alone.")
    if not pins:
        say(verify.Says.SKIP % verify.Says.NO_SIGNER)
    side = [name for name in files if name.endswith((".tsr", ".tlog-proof"))]
    if side:
        say("SKIP  NOT CHECKED: time stamps and proofs of inclusion (.tsr, .tlog-proof: %d). `plumbline bundle verify` checks them." % len(side))
    pages = [name for name in files if name.startswith("reports/")]
    if pages:
        say("SKIP  NOT CHECKED: what the pages say (reports/: %d). `plumbline bundle report` makes them again." % len(pages))
    say("")
    bad_between = len(problems) + unsigned
    say("%s, %d intact, %d not, %s between bundles and index, %d missing" % (
        verify.counted(len(results), "bundle"), len(results) - bad, bad, verify.counted(bad_between, "fault"), len(index["missing"])))
    verify.print_not_proven()
    return 1 if bad or bad_between or index["missing"] else 0


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
