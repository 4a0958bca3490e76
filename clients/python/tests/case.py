"""What the tests of a recorder share."""
import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

from plumbline import Recorder

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

AGENT = "did:web:shop.example"


class Case(unittest.TestCase):
    def setUp(self):
        self.spool = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.spool, ignore_errors=True)
        self.errors, self.warnings = [], []

    def recorder(self, url, **options):
        options = {"spool": self.spool, "on_error": self.errors.append,
                   "on_warning": lambda *warning: self.warnings.append(warning), **options}
        recorder = Recorder(AGENT, "ac-1", url=url, token="", **options)
        self.addCleanup(recorder.close, 0)
        return recorder

    def kinds(self):
        return [error.kind for error in self.errors]

    def wait(self, what, holds, seconds=20):
        end = time.monotonic() + seconds
        while not holds():
            self.assertLess(time.monotonic(), end, f"waiting for {what}; errors: {self.errors}")
            time.sleep(0.005)

    def spooled(self):
        """Returns the lines in the spool, and their size."""
        lines, size = [], 0
        for directory, _, names in os.walk(self.spool):
            for name in sorted(names):
                if name.endswith(".jsonl"):
                    with open(os.path.join(directory, name), "rb") as file:
                        data = file.read()
                    lines += data.splitlines()
                    size += len(data)
        return lines, size

    def process(self, url, code, **environment):
        """Starts a Python process with a recorder and a session."""
        head = f"import os, signal, sys, time\nfrom plumbline import Recorder\nrecorder = Recorder({AGENT!r}, 'ac-1', token='', exit_timeout=60)\n"
        return subprocess.Popen(
            [sys.executable, "-c", head + code], stdout=subprocess.PIPE, text=True, cwd=ROOT,
            env={**os.environ, "PLUMBLINE_URL": url, "PLUMBLINE_SPOOL": self.spool, "PYTHONDONTWRITEBYTECODE": "1", **environment})
