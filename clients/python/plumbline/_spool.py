"""The spool: files with the traces that ingest has not answered for yet.

SPOOL/AGENT/OWNER/N.jsonl. A process writes only in its own directory, and takes over the
files of an owner that is dead by renaming them, which succeeds for one process only.
docs/CLIENTS.md describes the directory, which recorders in all languages share.
"""
from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
import socket
import time
from typing import Optional

LETTERS = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")

FOREIGN_SECONDS = 600  # after which an owner on another host that gives no sign counts as dead


def default_root() -> str:
    state = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.environ.get("PLUMBLINE_SPOOL") or os.path.join(state, "plumbline", "spool")


def directory_of(agent_id: str) -> str:
    """Returns the agent's id as a name: other bytes than letters, digits, _ and - become =XX."""
    name = "".join(chr(b) if b in LETTERS else f"={b:02X}" for b in agent_id.encode(errors="replace"))
    if len(name) <= 200:
        return name
    return name[:150] + "=" + hashlib.sha256(agent_id.encode(errors="replace")).hexdigest()[:32]


class Segment:
    """Some lines in the order of recording: a file of the spool, or memory where there is none."""

    def __init__(self, path: Optional[str]) -> None:
        self.path = path
        self.items: Optional[list[bytes]] = []  # None: only in the file
        self.size = 0
        self.born = time.monotonic()
        self.synced = path is None
        self.adopted = False
        self.traces = 0  # of this process
        self._file: Optional[int] = None

    @classmethod
    def of_file(cls, path: str) -> Segment:
        segment = cls(path)
        segment.items, segment.adopted, segment.size = None, True, os.path.getsize(path)
        return segment

    def append(self, lines: list[bytes], sync: bool) -> None:
        """Adds lines. If they cannot be written, it raises OSError, and the segment has what it had before."""
        data = b"".join(line + b"\n" for line in lines)
        assert self.items is not None
        if self.path is not None:
            try:
                self._write(self.path, data, sync)
            except OSError:
                self._take_back()
                raise
        self.items += lines
        self.size += len(data)

    def _write(self, path: str, data: bytes, sync: bool) -> None:
        if self._file is None:
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
        view = memoryview(data)
        while view:
            view = view[os.write(self._file, view):]
        if sync:
            os.fsync(self._file)
            sync_directory(os.path.dirname(path))

    def _take_back(self) -> None:
        """Removes what a write that failed has left. If that fails, too, lines are sent twice, which is harmless."""
        try:
            if self.size and self._file is not None:
                os.ftruncate(self._file, self.size)
            else:
                self._close_file()
                os.unlink(self.path or "")
        except OSError:
            pass

    def close(self) -> None:
        """Ends the writing. The lines leave memory if the file has them."""
        if self._file is None:
            return
        try:
            here = os.stat(self.path or "").st_ino == os.fstat(self._file).st_ino
        except OSError:
            here = False  # another process took this one for dead, perhaps before the last lines
        if self._close_file() and here:
            self.items = None
        else:
            self.path, self.synced = None, True

    def _close_file(self) -> bool:
        """Reports whether the file has been closed without an error: some file systems say only then that there is no space."""
        file, self._file = self._file, None
        try:
            if file is not None:
                os.close(file)
        except OSError:
            return False
        return True

    def sync(self) -> None:
        """Makes a closed file survive a loss of power."""
        if self.synced or self.path is None:
            return
        file = os.open(self.path, os.O_RDONLY)
        try:
            os.fsync(file)
        finally:
            os.close(file)
        sync_directory(os.path.dirname(self.path))
        self.synced = True

    def load(self) -> list[bytes]:
        """Returns the lines. An incomplete last line, of a process that was killed, is none."""
        if self.items is None:
            with open(self.path or "", "rb") as file:  # ingest does not answer for a blank line
                self.items = [line for line in file.read().split(b"\n")[:-1] if line.strip()]
        return self.items

    def remove(self) -> None:
        if self.path is not None:
            try:
                os.unlink(self.path)
            except FileNotFoundError:
                pass


def sync_directory(path: str) -> None:
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


class Spool:
    """The directory of this process. With root None, everything stays in memory."""

    def __init__(self, root: Optional[str], agent_id: str) -> None:
        # Absolute, because the agent may change its directory.
        self.agent = os.path.abspath(os.path.join(root, directory_of(agent_id))) if root is not None else None
        self.own: Optional[str] = None
        self._number = 0

    def again(self) -> Spool:
        """Returns the spool of the same agent for another process."""
        spool = Spool(None, "")
        spool.agent = self.agent
        return spool

    def segment(self) -> Segment:
        """Returns a new segment; OSError if there can be no file."""
        if self.agent is None:
            return Segment(None)
        return Segment(os.path.join(self._enter(), f"1-{self._next():012d}.jsonl"))

    def _next(self) -> int:
        self._number += 1
        return self._number

    def _enter(self) -> str:
        """Makes the directory of this process, with its owner.json from the start."""
        assert self.agent is not None
        if self.own is None or not os.path.isdir(self.own):
            os.makedirs(self.agent, mode=0o700, exist_ok=True)
            name = f"{os.getpid()}-{secrets.token_hex(4)}"
            new = os.path.join(self.agent, "." + name)
            os.mkdir(new, 0o700)
            write_owner(new, os.getpid())
            self.own = os.path.join(self.agent, name)
            os.rename(new, self.own)
            sync_directory(self.agent)
            sync_directory(os.path.dirname(self.agent))
        return self.own

    def touch(self) -> None:
        """Shows processes on other hosts that this one lives."""
        if self.own is not None:
            os.utime(os.path.join(self.own, "owner.json"))

    def adopt(self) -> tuple[list[Segment], list[OSError]]:
        """Takes over the files of dead owners, the oldest first. An error is about one owner, and concerns no other."""
        if self.agent is None or not os.path.isdir(self.agent):
            return [], []
        dead = []
        for name in os.listdir(self.agent):
            path = os.path.join(self.agent, name)
            if path != self.own and not name.startswith(".") and not alive(path):
                dead.append(path)
        taken: list[Segment] = []
        faults: list[OSError] = []
        for directory in sorted(dead, key=modified):
            try:
                for name in sorted(os.listdir(directory)):
                    if name.endswith(".jsonl"):
                        self._take(os.path.join(directory, name), taken)
                remove_empty(directory)
            except FileNotFoundError:
                pass  # another process has taken it all
            except OSError as error:  # it belongs to another user, for example
                faults.append(error)
        return taken, faults

    def _take(self, file: str, taken: list[Segment]) -> None:
        path = os.path.join(self._enter(), f"0-{self._next():012d}.jsonl")
        try:
            os.rename(file, path)
            taken.append(Segment.of_file(path))
        except FileNotFoundError:
            pass  # another process was first

    def leave(self) -> None:
        """Gives the directory up: what is left in it is for the next process, or recorder."""
        if self.own is None:
            return
        if any(name.endswith(".jsonl") for name in os.listdir(self.own)):
            write_owner(self.own, 0)
        else:
            shutil.rmtree(self.own, ignore_errors=True)
        self.own = None


def modified(directory: str) -> float:
    try:
        return os.path.getmtime(directory)
    except OSError:
        return 0.0


def remove_empty(directory: str) -> None:
    try:
        os.unlink(os.path.join(directory, "owner.json"))
    except FileNotFoundError:
        pass
    try:
        os.rmdir(directory)
    except OSError:
        pass  # another process is taking the rest


def write_owner(directory: str, pid: int) -> None:
    path = os.path.join(directory, "owner.json")
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump({"host": socket.gethostname(), "pid": pid, "started": started(pid)}, file)
    os.replace(path + ".new", path)


def started(pid: int) -> str:
    """Returns boot and start of a process that runs, which its id alone does not identify. Empty if unknown."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return "" if fields[0] in (b"Z", b"X") else f"{file.read().strip()}:{fields[19].decode()}"
    except (OSError, IndexError):
        return ""


def alive(directory: str) -> bool:
    """Reports whether the owner of a directory may still write to it."""
    path = os.path.join(directory, "owner.json")
    try:
        with open(path, encoding="utf-8") as file:
            owner = json.load(file)
        host, pid, begun = owner["host"], int(owner["pid"]), owner["started"]
    except (OSError, ValueError, KeyError, TypeError):
        host, pid, begun = None, 0, ""
    if host != socket.gethostname():
        try:
            at = os.path.getmtime(path if os.path.exists(path) else directory)
        except OSError:
            return True  # it is just being removed
        return time.time() - at < FOREIGN_SECONDS
    if pid <= 0:
        return False
    if os.name != "posix":
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return not begun or begun == started(pid)
