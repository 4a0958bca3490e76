"""Against a real ingest, whose address is PLUMBLINE_TEST_URL.

With PLUMBLINE_TEST_STOP, records until that file exists, which gives whoever started this test the
time to kill ingest. PLUMBLINE_TEST_RESULT is where it writes what it has recorded.
"""
import json
import os
import sys
import time
import unittest
from unittest import mock

from plumbline import Key, Recorder
from tests.case import Case

URL = os.environ.get("PLUMBLINE_TEST_URL", "")
STOP, RESULT = os.environ.get("PLUMBLINE_TEST_STOP"), os.environ.get("PLUMBLINE_TEST_RESULT")

AGENT, CARD = "did:web:python.example", "ac-python"


def card(*keys):
    return {
        "aap_version": "0.1.0", "card_id": CARD, "agent_id": AGENT, "issued_at": "2026-01-01T00:00:00Z", "expires_at": "2099-01-01T00:00:00Z",
        "principal": {"type": "human", "relationship": "delegated_authority"}, "values": {"declared": ["honesty"]},
        "autonomy_envelope": {"bounded_actions": ["search", "compare"], "escalation_triggers": [], "forbidden_actions": []},
        "audit_commitment": {"trace_format": "ap-trace-v1", "retention_days": 90, "queryable": False, "tamper_evidence": "signed"},
        "extensions": {"plumbline": {"keys": [key.public() for key in keys]}},
    }


@unittest.skipUnless(URL, "PLUMBLINE_TEST_URL is not set: there is no ingest")
class Ingest(Case):
    def test_nothing_is_lost_or_doubled_while_ingest_is_killed(self):
        fast = Key(os.urandom(32), "k1")
        with mock.patch.dict(sys.modules, {"cryptography.hazmat.primitives.asymmetric.ed25519": None}):
            plain = Key(os.urandom(32), "k2")  # signs without the package
        recorders = [Recorder(AGENT, CARD, url=URL, spool=RESULT + ".spool" if RESULT else self.spool, key=key,
                              on_error=self.errors.append, on_warning=lambda *w: self.warnings.append(w)) for key in (fast, plain)]
        self.assertEqual(recorders[0].register_card(card(fast, plain)), "registered")
        self.assertEqual(recorders[0].register_card(card(fast, plain)), "unchanged")
        recorded, number, began = [], 0, time.monotonic()
        while not os.path.exists(STOP) if STOP else number < 8:
            self.assertLess(time.monotonic() - began, 300, "nobody made the file " + str(STOP))
            number += 1
            with recorders[number % 2].session() as session:
                @session.tool(values=["honesty"], reasoning="the user asked")
                def search(query, price):
                    return {"found": query, "price": price}

                for i in range(20):
                    search("kettle é€😀", i / 7)
                    trace = session.record("compare", values=["honesty"], alternatives=["a", "b"], selected="b", confidence=0.5)
                    time.sleep(0.01)
                recorded.append({"session_id": session.session_id, "traces": session.next_number - 1, "last": trace})
        for recorder in recorders:
            self.assertTrue(recorder.close(60), self.errors)
        stats = [recorder.stats() for recorder in recorders]
        total = {name: sum(s[name] for s in stats) for name in stats[0]}
        self.assertEqual(total["recorded"], 40 * len(recorded))
        self.assertEqual(total["accepted"] + total["duplicate"], total["recorded"])
        self.assertLessEqual(set(self.kinds()), {"unreachable"}, self.errors)
        self.assertEqual(self.warnings, [])
        if RESULT:
            with open(RESULT, "w", encoding="utf-8") as file:
                json.dump({"agent_id": AGENT, "sessions": recorded}, file)

    def test_what_ingest_says_about_a_trace_is_heard(self):
        dead = os.path.join(self.spool, "did=3Aweb=3Aunknown=2Eexample", "1-dead")
        os.makedirs(dead)
        with open(os.path.join(dead, "owner.json"), "w", encoding="utf-8") as file:
            json.dump({"host": os.uname().nodename, "pid": 0, "started": ""}, file)
        with open(os.path.join(dead, "1-000000000001.jsonl"), "w", encoding="utf-8") as file:
            file.write('{"trace_id":"tr-damaged"}\n')
        recorder = Recorder("did:web:unknown.example", "ac-unknown", url=URL, spool=self.spool, on_error=self.errors.append,
                            on_warning=lambda *w: self.warnings.append(w))
        recorder.session().record("search")
        self.assertTrue(recorder.close(60), self.errors)
        self.assertEqual([w[0] for w in self.warnings], ["unknown_card"])
        self.assertEqual([(e.kind, e.trace_id) for e in self.errors], [("refused", "tr-damaged")])
        self.assertIn(("/agent_id", "is missing (required)"), self.errors[0].faults)


if __name__ == "__main__":
    unittest.main()
