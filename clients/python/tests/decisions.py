"""Reads arguments of record, a JSON object a line; prints the trace and the faults of each."""
import json
import sys

from plumbline._trace import build, check
from plumbline._values import canonical

HEAD = {"trace_id": "tr-1", "agent_id": "did:web:shop.example", "card_id": "ac-1"}

for line in sys.stdin:
    fields = json.loads(line)
    trace = build({**HEAD, "timestamp": fields.pop("timestamp", "2026-01-31T12:30:00Z")}, fields.pop("session_id", "s"), 7, lambda: None, **fields)
    print(json.dumps({"trace": canonical(trace), "faults": [{"pointer": f.pointer, "message": f.message} for f in check(trace)]}))
