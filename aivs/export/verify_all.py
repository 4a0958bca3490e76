#!/usr/bin/env python3
"""Verifies the exported bundles in this directory.

    python3 -I verify_all.py [DIRECTORY] [--key PUBLIC_KEY_HEX]...

DIRECTORY is the unpacked export; by default the one of this file. With --key each
bundle must be signed by that key, or by a session key that it leads to in keys.jsonl.

Needs Python 3.6 or newer and nothing else, no network. Prints a line for each bundle,
then what is wrong between them and what is missing. Exits 0 when all bundles are
intact, their links agree and nothing of the range is known to be missing, else 1.
"""
import contextlib
import importlib.util
import io
import json
import sys
import tarfile
import tempfile
from pathlib import Path

BUNDLES = "bundles"
MOST = 32 << 30  # bytes that one bundle may unpack to


def load_verifier(directory):
    """The functions of verify.py, without running it."""
    spec = importlib.util.spec_from_file_location("verify", str(directory / "verify.py"))
    module = importlib.util.module_from_spec(spec)
    sys.dont_write_bytecode = True
    spec.loader.exec_module(module)
    return module


def unpack(bundle, directory, verify):
    """Unpacks the files of a bundle, none of them outside the directory."""
    seen, total = set(), 0
    with tarfile.open(str(bundle), "r:gz") as archive:
        for entry in archive:
            name = entry.name[2:] if entry.name.startswith("./") else entry.name
            if entry.isdir():
                continue
            parts = name.split("/")
            if not entry.isreg() or entry.sparse is not None or parts[0] != "session_proof" or len(parts) < 2:
                raise verify.Fault("archive: " + verify.Says.NOT_PLAIN)
            if any(part in ("", ".", "..") or "\\" in part or "\0" in part for part in parts):
                raise verify.Fault("archive: " + verify.Says.NOT_PLAIN)
            if name.lower() in seen:
                raise verify.Fault("archive: " + verify.Says.NAMES_TWICE)
            seen.add(name.lower())
            total += entry.size
            if total > MOST:
                raise verify.Fault("archive: " + verify.Says.TOO_LARGE % MOST)
            if len(seen) > 10000:
                raise verify.Fault("archive: " + verify.Says.TOO_MANY % 10000)
            target = directory.joinpath(*parts)
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("xb") as out:
                source = archive.extractfile(entry)
                for block in iter(lambda: source.read(1 << 20), b""):
                    out.write(block)
    return directory / "session_proof"


# ---- the key list: each line is signed by the key before the new one, and by the new one

LIST = "plumbline-keys/1"


class KeyList:
    """The session keys of keys.jsonl, once every line was checked."""

    def __init__(self, path, verify):
        self.keys = []
        number = 0
        if not path.exists():
            return
        with path.open("rb") as lines:
            for line in lines:
                number += 1
                try:
                    self.add(verify.parse_object(verify.utf8(line, "keys.jsonl"), "keys.jsonl"), number, verify)
                except (verify.Fault, KeyError, TypeError, ValueError) as e:
                    raise verify.Fault("keys.jsonl: line %d is not a line of a key list: %s" % (number, e))

    def add(self, entry, number, verify):
        keys, signatures = entry["keys"], entry.pop("signatures")
        if entry["type"] != LIST or entry["version"] != number or len(keys) != len(self.keys) + 1:
            raise ValueError("lines are missing or out of order")
        new = keys[-1]
        for key, before in zip(keys, self.keys):
            ended = key["purpose"] == new["purpose"] and "not_after" in key and key["not_after"] <= before.get("not_after", key["not_after"])
            if key != before and not (ended and dict(before, not_after=key["not_after"]) == key):
                raise ValueError("an earlier key was changed")
        for key in keys:
            public = verify.hex_bytes(key["public_key"], 32)
            if public is None or verify.small_order(public) or key["key_id"] != verify.sha256_hex(public)[:16]:
                raise ValueError("a key is malformed")
        if len(set(key["key_id"] for key in keys)) != len(keys):
            raise ValueError("a key is listed twice")
        signers = [key for key in self.keys if key["purpose"] == new["purpose"]][-1:] + [new]
        message = (LIST + "\n" + json.dumps(entry, sort_keys=True, separators=(",", ":"))).encode()
        if len(signatures) != len(signers):
            raise ValueError("signatures are missing")
        for signer, signature in zip(signers, signatures):
            value = verify.base64_bytes(signature["value"], 64)
            if value is None or not verify.signature_holds(verify.hex_bytes(signer["public_key"], 32), value, message):
                raise ValueError("a signature is wrong")
        self.keys = keys

    def accepts(self, pins, key, at):
        """Whether a pinned key leads to a key that was valid at a time (YYYY-MM-DDTHH:MM:SSZ)."""
        listed = [k for k in self.keys if k["purpose"] == "session"]
        if not any(k["public_key"] == pin.hex() for k in listed for pin in pins):
            return False
        return any(k["public_key"] == key.hex() and k.get("not_before", "") <= at <= k.get("not_after", "9999") for k in listed)


# ---- one bundle


class Result:
    """What the verification of one bundle says."""

    def __init__(self, name):
        self.name, self.faults, self.detail, self.lines = name, [], "", []
        self.opening, self.digest = None, ""


def judge(verify, directory, name, pins, keys):
    result = Result(name)
    path = directory / BUNDLES / name
    try:
        result.digest = verify.file_digest(directory / BUNDLES, name)[0]
        with tempfile.TemporaryDirectory() as place:
            try:
                proof = unpack(path, Path(place), verify)
            except (tarfile.TarError, EOFError, OSError) as e:
                raise verify.Fault("archive: cannot be unpacked", detail=e)
            said = io.StringIO()
            with contextlib.redirect_stdout(said):
                verify.verify(proof, expected(verify, proof, pins, keys))
            result.lines = said.getvalue().split("\n")
            result.opening = opening_of(verify, proof)
    except verify.Fault as fault:
        result.faults, result.detail = list(fault.args), fault.detail
    return result


def expected(verify, proof, pins, keys):
    """The key that must have signed a bundle: its own if it is one of those accepted, else the first one given."""
    if not pins:
        return None
    manifest = verify.read_json(proof, "manifest.json")[0]
    key = verify.public_key(verify.read(proof, "public_key.pem"))
    if key is not None and (key in pins or keys.accepts(pins, key, str(manifest.get("exported_at")))):
        return key
    return pins[0]


def opening_of(verify, proof):
    """The open row of a bundle that is intact; None if it has none."""
    with (proof / "audit_log.jsonl").open("rb") as lines:
        line = lines.readline()
    row = json.loads(line.decode("utf-8")) if line.strip() else {}
    if row.get("action_type") != "open" or not row.get("tool_name", "").startswith(verify.OPEN):
        return None
    return json.loads(row["inputs_json"])


# ---- all of them


def links(results):
    """What is wrong between the parts of each session."""
    sessions = {}
    for r in results:
        if r.opening is not None and not r.faults:
            sessions.setdefault((r.opening.get("agent_id", ""), r.opening["session_id"]), []).append(r)
    for (agent, session), parts in sorted(sessions.items()):
        parts.sort(key=lambda r: (r.opening["part"], r.name))
        where = "session %s of agent %s" % (json.dumps(session), json.dumps(agent))
        for before, this in zip([None] + parts, parts):
            part = before.opening["part"] if before else 0
            if this.opening["part"] == part:
                yield "%s: part %d was sealed twice: %s and %s" % (where, part, before.name, this.name)
            elif this.opening["part"] != part + 1:
                yield "%s: part %d is missing" % (where, part + 1)
            elif this.opening.get("previous_bundle_hash", "") != (before.digest if before else ""):
                yield "%s: it does not continue part %d, which is here" % (this.name, part)
        if not parts[-1].opening["last_part"]:
            yield "OPEN %s: its last part is not here, or is not sealed yet" % where


def compare(index, results):
    """Where the index and the bundles disagree."""
    found = dict((r.name, r) for r in results)
    listed = {}
    for entry in index["bundles"]:
        listed[entry["file"]] = entry
    for name, entry in sorted(listed.items()):
        r = found.get(name[len(BUNDLES) + 1:])
        if r is None:
            yield "%s: the index lists it, and it is not here" % name
            continue
        if r.digest != entry["sha256"]:
            yield "%s: its SHA-256 is not the one in the index" % name
        elif entry["intact"] and r.opening is not None:
            stated = (entry["agent_id"], entry["session_id"], entry.get("part", 0), entry["last_part"])
            if stated != (r.opening.get("agent_id", ""), r.opening["session_id"], r.opening["part"], r.opening["last_part"]):
                yield "%s: the index says something else about it than the bundle" % name
    for name in sorted(found):
        if BUNDLES + "/" + name not in listed:
            yield "%s: it is here, and the index does not list it" % (BUNDLES + "/" + name)


def conclusion_of(result, verify):
    """The two sentences about the bundle and about the agent."""
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
    pins = [verify.hex_bytes(text, 32) for text in digits]
    if None in pins or any(verify.small_order(pin) for pin in pins):
        print("--key: want the 64 hexadecimal digits of an Ed25519 public key")
        return 1
    return verify_all(directory, pins, verify)


def verify_all(directory, pins, verify):
    say = lambda text: print(verify.printable(text))
    try:
        index = verify.parse_object(verify.utf8((directory / "index.json").read_bytes(), "index.json"), "index.json")
        keys = KeyList(directory / "keys.jsonl", verify)
    except (verify.Fault, OSError) as e:
        say("FAIL  %s" % e)
        return 1
    names = sorted(path.relative_to(directory / BUNDLES).as_posix() for path in (directory / BUNDLES).rglob("*.tar.gz")) if (directory / BUNDLES).exists() else []
    results, bad = [], 0
    for name in names:
        result = judge(verify, directory, name, pins, keys)
        about, verdict = conclusion_of(result, verify)
        say("%s  %s  %s" % (about.split(":")[0], name, verdict))
        for fault in result.faults:
            say("      FAIL  " + fault)
        if result.detail:
            say("            " + result.detail)
        bad += bool(result.faults)
        results.append(result)
    problems = list(compare(index, results)) + list(links(results))
    for problem in problems:
        say(problem if problem.startswith("OPEN ") else "FAIL  " + problem)
    problems = [p for p in problems if not p.startswith("OPEN ")]
    for fault in index["faults_between"]:
        problems.append(fault)
        say("FAIL  index: %s: %s" % (fault["where"], fault["message"]))
    for m in index["missing"]:
        say("MISSING  agent %s, session %s: %s" % (json.dumps(m["agent_id"]), json.dumps(m["session_id"]), m["why"]))
    if not index["missing_known"]:
        say("SKIP  NOT CHECKED: sessions that are held or not sealed yet. This export was made from a directory of bundles alone.")
    if not pins:
        say(verify.Says.SKIP % verify.Says.NO_SIGNER)
    beside = [p for p in (directory / BUNDLES).rglob("*") if p.suffix in (".tsr", ".tlog-proof")]
    if beside:
        say("SKIP  NOT CHECKED: %d time stamps and proofs of inclusion. `plumbline bundle verify` checks them." % len(beside))
    say("")
    say("%d bundles, %d intact, %d not, %d faults between bundles and index, %d missing" % (len(results), len(results) - bad, bad, len(problems), len(index["missing"])))
    verify.print_not_proven()
    return 1 if bad or problems or index["missing"] else 0


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
