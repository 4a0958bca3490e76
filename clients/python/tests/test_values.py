import datetime
import enum
import hashlib
import json
import math
import os
import re
import struct
import unittest
from collections import namedtuple
from dataclasses import dataclass
from decimal import Decimal

from plumbline._values import bounded, canonical, number, plain

VECTORS = os.path.join(os.path.dirname(__file__), "..", "..", "..", "..", "shared", "conformance", "jcs")


class Canonical(unittest.TestCase):
    def setUp(self):
        if not os.path.isdir(VECTORS):
            self.skipTest(f"{VECTORS}: the test data of RFC 8785 is not next to the repository")

    def test_test_data(self):
        names = os.listdir(os.path.join(VECTORS, "input"))
        self.assertGreater(len(names), 5)
        for name in names:
            with open(os.path.join(VECTORS, "input", name), encoding="utf-8") as file:
                got = canonical(plain(json.load(file)))
            with open(os.path.join(VECTORS, "output", name), encoding="utf-8") as file:
                self.assertEqual(got, file.read().rstrip("\n"), name)

    def test_numbers(self):
        with open(os.path.join(VECTORS, "README.md"), encoding="utf-8") as file:
            values = [int(text, 16) for text in re.findall(r"\b0x([0-9a-f]{16})n", file.read())][:-1]  # the last is the base of the next
        values += [0x0010000000000000 + i for i in range(2000)]
        block, lines = bytes(32), []
        while len(values) < 10000:
            block = hashlib.sha256(block).digest()
            for (value,) in struct.iter_unpack("<d", block):
                if value != 0 and math.isfinite(value):
                    values.append(struct.unpack("<Q", struct.pack("<d", value))[0])
        for bits in values[:10000]:
            lines.append(f"{bits:x},{number(struct.unpack('<d', struct.pack('<Q', bits))[0])}\n")
        digest = hashlib.sha256("".join(lines).encode()).hexdigest()
        self.assertEqual(digest, "b9f7a8e75ef22a835685a52ccba7f7d6bdc99e34b010992cbc5864cd12be6892")


class Colour(enum.Enum):
    RED = "red"


@dataclass
class Point:
    x: int
    y: float


Pair = namedtuple("Pair", "left right")


class Rude:
    def __str__(self):
        raise RuntimeError("no")


class Scalar:
    """Is like a number of NumPy."""

    shape = ()

    def __init__(self, value):
        self.value = value

    def item(self):
        return self.value

    def __str__(self):
        return "a scalar"


class Values(unittest.TestCase):
    def test_numbers_of_libraries(self):
        # As texts, they would never meet a condition such as amount > 100.
        for value, want in ((Decimal("180.10"), 180.1), (Decimal("180.00"), 180.0), (Decimal("0.1000000000000000055"), "0.1000000000000000055"),
                            (Decimal("NaN"), "NaN"), (Decimal("1E+400"), "1E+400"), (Scalar(180), 180), (Scalar(False), False), (Scalar(0.5), 0.5),
                            (Scalar(None), "a scalar"), (Scalar(2**60 + 1), str(2**60 + 1))):
            self.assertEqual(plain(value), want)
            self.assertIs(type(plain(value)), type(want))

    def test_what_json_cannot_hold(self):
        zone = datetime.timezone(datetime.timedelta(hours=2))
        for value, want in (
            (float("nan"), "nan"), (float("-inf"), "-inf"), (10**400, str(10**400)), (2**60 + 1, str(2**60 + 1)), (2**53, 2**53),
            (10**24, 10**24), (-(10**22) - 1, str(-(10**22) - 1)), (True, True), ({1: "a", None: 2}, {"1": "a", "None": 2}),
            (b"\x00\xff", "AP8="), ({3, 1}, [1, 3]), ((1, [2]), [1, [2]]), (Colour.RED, "red"), (Point(1, 2.5), {"x": 1, "y": 2.5}),
            (Pair("a", 2), {"left": "a", "right": 2}), (datetime.date(2026, 1, 31), "2026-01-31"), ("a\ud800b", "a\ufffdb"),
            (datetime.datetime(2026, 1, 31, 12, 30, tzinfo=zone), "2026-01-31T10:30:00Z"), ("\ud83d\ude00", "\U0001f600"), (1j, "1j"),
        ):
            self.assertEqual(plain(value), want)
            canonical(plain(value)).encode()

    def test_integers_keep_their_digits(self):
        for value in (2**53, 10**21, 10**24, 12345678901234567000, -(10**22)):
            self.assertEqual(int(Decimal(canonical(plain(value)))), value)

    def test_large_and_deep_values_are_left_out(self):
        calls = []
        large = "x" * (200 << 10)
        got = bounded(large, lambda: calls.append(1))
        form = json.dumps(large).encode()
        self.assertEqual(got, {"left_out": {"bytes": len(form), "sha256": hashlib.sha256(form).hexdigest()}})
        loop = []
        loop.append(loop)
        self.assertEqual(bounded(loop, lambda: calls.append(1)), {"left_out": {"levels": 32}})
        self.assertEqual(len(calls), 2)
        self.assertEqual(bounded({"a": [1]}, self.fail), {"a": [1]})


if __name__ == "__main__":
    unittest.main()
