import asyncio
import json
import os
import unittest
from datetime import datetime, timezone
from unittest import mock

from plumbline import Key, PlumblineError
from plumbline._ed25519 import public_key, sign
from tests.case import AGENT, Case
from tests.ingest import Ingest, nowhere


class Sessions(Case):
    def recorded(self, use, **options):
        """Returns the traces that use(recorder) records."""
        with Ingest() as ingest:
            recorder = self.recorder(ingest.url, **options)
            use(recorder)
            self.assertTrue(recorder.flush(20))
            recorder.close()
            return ingest.traces()

    def test_every_argument_has_its_place(self):
        def use(recorder):
            recorder.session("s").record(
                "buy", type="escalate", category="escalation_trigger", target={"type": "shop", "identifier": "x"}, parameters={"amount": 250},
                alternatives=["wait", {"option_id": "A", "description": "buy now", "score": 0.5}], selected="A", reasoning="cheap",
                values=["honesty"], confidence=0.75, escalation={"required": True, "escalation_status": "pending"},
                execution={"tool_name": "shop", "cost_cents": 3}, turn=2, prior=["tr-0"], environment={"client": "web"},
                metadata={"model": "m"}, timestamp="2026-01-31T12:30:00Z", trace_id="tr-1")

        self.assertEqual(self.recorded(use), [{
            "trace_id": "tr-1", "agent_id": AGENT, "card_id": "ac-1", "timestamp": "2026-01-31T12:30:00Z",
            "action": {"type": "escalate", "name": "buy", "category": "escalation_trigger", "target": {"type": "shop", "identifier": "x"},
                       "parameters": {"amount": 250}},
            "decision": {"alternatives_considered": [{"option_id": "wait", "description": "wait"},
                                                     {"option_id": "A", "description": "buy now", "score": 0.5}],
                         "selected": "A", "selection_reasoning": "cheap", "values_applied": ["honesty"], "confidence": 0.75},
            "escalation": {"evaluated": True, "required": True, "escalation_status": "pending"},
            "context": {"session_id": "s", "conversation_turn": 2, "prior_trace_ids": ["tr-0"], "environment": {"client": "web"},
                        "metadata": {"model": "m", "sequence_number": 1, "execution": {"tool_name": "shop", "cost_cents": 3}}},
        }])

    def test_invalid_input_is_heard_counted_and_leaves_a_gap(self):
        class Rude:
            def __str__(self):
                raise RuntimeError("no")

        def use(recorder):
            session = recorder.session()
            session.record("first")
            for wrong in ({"action": None}, {"action": "x", "type": "buy"}, {"action": "x", "confidence": 2}, {"action": "x", "selected": "B"},
                          {"action": "x", "alternatives": 7}, {"action": "x", "values": "v"},
                          {"action": "x" * 513}, {"action": "x", "reasoning": "r" * (800 << 10)}):
                self.assertIsInstance(session.record(**wrong), str)
            session.record("last", parameters={"rude": Rude()})
            self.assertEqual(recorder.stats()["invalid"], 8)

        traces = self.recorded(use)
        self.assertEqual([t["context"]["metadata"]["sequence_number"] for t in traces], [1, 10])
        self.assertEqual(traces[1]["action"]["parameters"], {"rude": {"left_out": {"error": "RuntimeError"}}})
        self.assertEqual([code for code, _, _ in self.warnings], ["left_out"])
        self.assertEqual(self.kinds(), ["invalid"] * 8)
        self.assertEqual(self.errors[1].faults, [("/action/type", '"buy" is none of recommend, execute, escalate, deny')])
        self.assertEqual(self.errors[3].faults, [("/decision/selected", 'no alternative has the option_id "B"')])

    def test_numbers_of_sessions(self):
        def use(recorder):
            first = recorder.session("a")
            first.record("x")
            recorder.session("b", first_number=first.next_number).record("x")
            recorder.session("a", end=False).record("x")
            recorder.session("c", first_number=None).record("x")
            first.record("x")

        got = [(t["context"]["session_id"], t["context"].get("metadata", {}).get("sequence_number")) for t in self.recorded(use)]
        self.assertEqual(got, [("a", 1), ("b", 2), ("a", 2), ("c", None), ("a", 3)])

    def test_a_clock_that_is_set_back(self):
        times = [datetime(2026, 1, 1, 12, 0, s, tzinfo=timezone.utc) for s in (5, 3, 9)]

        def use(recorder):
            with mock.patch("plumbline._session.datetime") as clock:
                clock.now.side_effect, clock.min = times, datetime.min
                session = recorder.session()
                for _ in times:
                    session.record("x")

        got = [t["timestamp"] for t in self.recorded(use)]
        self.assertEqual(got, [f"2026-01-01T12:00:0{s}.000000Z" for s in (5, 5, 9)])

    def test_tools(self):
        def use(recorder):
            with recorder.session("s") as session:
                class Shop:
                    @session.tool(category="escalation_trigger", values=["honesty"], reasoning=lambda p: f"look for {p['query']}")
                    def search(self, query, limit=3, *more, **rest):
                        found.append(query)
                        return {"found": found}

                @session.tool
                def fails(items):
                    items.clear()
                    raise KeyError("gone")

                found = []
                self.assertEqual(Shop().search("kettle", color="red"), {"found": ["kettle"]})
                with self.assertRaises(KeyError):
                    fails([1])
                with self.assertRaises(TypeError):
                    fails()
                self.assertEqual(Shop.search.__name__, "search")

        traces = self.recorded(use)
        execution = traces[0]["context"]["metadata"]["execution"]
        inputs = {"query": "kettle", "limit": 3, "more": [], "color": "red"}
        self.assertEqual(execution, {"tool_name": "search", "inputs": inputs, "outputs": {"found": ["kettle"]}})
        self.assertEqual(traces[0]["action"], {"type": "execute", "name": "search", "category": "escalation_trigger", "parameters": inputs})
        self.assertEqual(traces[0]["decision"]["selection_reasoning"], "look for kettle")
        self.assertGreaterEqual(traces[0]["context"]["metadata"]["duration_ms"], 0)
        self.assertEqual(traces[1]["context"]["metadata"]["execution"], {"tool_name": "fails", "inputs": {"items": [1]}, "error": "KeyError: 'gone'"})
        self.assertIn("TypeError", traces[2]["context"]["metadata"]["execution"]["error"])
        self.assertEqual(self.errors, [])

    def test_asynchronous_tools_are_numbered_as_they_began(self):
        def use(recorder):
            @recorder.tool(values=["honesty"])
            async def search(query, seconds):
                await asyncio.sleep(seconds)
                if query == "bad":
                    raise ValueError(query)
                return query

            async def agent():
                async with recorder.session("s"):
                    return await asyncio.gather(search("slow", 0.02), search("fast", 0), search("bad", 0), return_exceptions=True)

            got = asyncio.run(agent())
            self.assertEqual(got[:2], ["slow", "fast"])
            self.assertIsInstance(got[2], ValueError)

        traces = {t["action"]["parameters"]["query"]: t for t in self.recorded(use)}
        self.assertEqual([traces[q]["context"]["metadata"]["sequence_number"] for q in ("slow", "fast", "bad")], [1, 2, 3])
        self.assertEqual({t["context"]["session_id"] for t in traces.values()}, {"s"})
        self.assertEqual(traces["bad"]["context"]["metadata"]["execution"]["error"], "ValueError: bad")

    def test_what_a_tool_returns_is_what_the_caller_gets(self):
        class Response:
            """Can be awaited, or entered: the caller decides."""

            def __await__(self):
                return iter(())

        def use(recorder):
            session = recorder.session("s")
            response = Response()
            self.assertIs(session.tool(lambda: response, name="request")(), response)

            async def work(result):
                if isinstance(result, Exception):
                    raise result
                return result

            async def agent():
                tasks = [asyncio.ensure_future(work(r)) for r in (7, ValueError("no"))] + [asyncio.get_running_loop().create_future()]
                for task in tasks:
                    self.assertIs(session.tool(lambda task=task: task, name="start")(), task)
                tasks[2].cancel()
                await asyncio.wait(tasks)
                await asyncio.sleep(0)
                return await session.tool(work)(8)

            self.assertEqual(asyncio.run(agent()), 8)

        got = [(t["action"]["name"], t["context"]["metadata"]["execution"]) for t in self.recorded(use)]
        self.assertEqual([(name, e.get("outputs"), e.get("error")) for name, e in got], [
            ("request", None, None), ("start", None, "CancelledError: "), ("start", 7, None), ("start", None, "ValueError: no"), ("work", 8, None)])

    def test_a_trace_with_many_large_values_and_a_long_error(self):
        def use(recorder):
            @recorder.tool
            def merge(a, b, c, d, small):
                raise ValueError("é" * 100_000)

            with self.assertRaises(ValueError):
                merge(*("x" * (120 << 10) for _ in range(4)), small=1)
            recorder.session().record("x", alternatives=(text for text in ("a", "b")), selected="b", parameters={str(i): "x" * (100 << 10) for i in range(9)})

        first, second = self.recorded(use)
        parameters, execution = first["action"]["parameters"], first["context"]["metadata"]["execution"]
        self.assertEqual((parameters, parameters["small"], parameters["a"]["left_out"]["bytes"]), (execution["inputs"], 1, (120 << 10) + 2))
        self.assertTrue(execution["error"].startswith("ValueError: éé") and execution["error"].endswith("é…"))
        self.assertLessEqual(len(execution["error"].encode()), 4 << 10)
        self.assertEqual((len(second["decision"]["alternatives_considered"]), list(second["action"]["parameters"]["8"])), (2, ["left_out"]))
        self.assertEqual(self.kinds(), [])

    def test_a_tool_outside_of_every_session(self):
        def use(recorder):
            @recorder.tool
            def search():
                return 1

            search()
            with recorder.session("s"):
                search()
            search()

        self.assertEqual([t["context"].get("session_id") for t in self.recorded(use)], [None, "s", None])

    def test_an_exception_in_a_session_passes_and_ends_it(self):
        with Ingest() as ingest:
            recorder = self.recorder(ingest.url)
            with self.assertRaises(ZeroDivisionError), recorder.session("s") as session:
                session.record("x")
                1 / 0
            self.assertTrue(recorder.flush(20))
            self.assertEqual(ingest.ends, [("s", 1)])

    def test_wrong_arguments_raise_nothing(self):
        class Rude:
            def __str__(self):
                raise RuntimeError("no")

        def use(recorder):
            recorder.session("a", first_number="3").record("x")
            recorder.session(["b"]).record("x", "y", "z")
            self.assertIsInstance(recorder.session().record("x", trace_id=Rude()), str)

        got = [(t["context"]["session_id"], t["context"].get("metadata", {}).get("sequence_number")) for t in self.recorded(use)]
        self.assertEqual(got, [("a", None), ("['b']", 1)])
        self.assertEqual(self.kinds(), ["invalid"] * 2)
        self.assertIn("first_number is '3'", str(self.errors[0]))
        self.assertEqual([message for _, message, _ in self.warnings], ["record() has no argument 'number 2', and ignores it"])

    def test_arguments_that_do_not_exist_are_ignored_with_a_warning(self):
        def use(recorder):
            recorder.tool(lambda: None, name="search", categori="forbidden")()
            recorder.session().record("buy", reasonin="cheap")
            recorder.session().record()

        traces = self.recorded(use)
        self.assertEqual([(t["action"]["name"], t["action"]["category"]) for t in traces], [("search", "bounded"), ("buy", "bounded")])
        self.assertEqual([(code, message) for code, message, _ in self.warnings],
                         [("ignored_argument", "tool() has no argument 'categori', and ignores it")])
        self.assertEqual(self.errors[0].faults[0], ("/action/name", "is missing (required)"))


class Keys(Case):
    # RFC 8032, section 7.1, tests 1 and 2.
    VECTORS = (
        ("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60", "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "",
         "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b"),
        ("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb", "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "72",
         "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"),
    )

    def test_signatures_without_a_package(self):
        for seed, public, message, signature in self.VECTORS:
            seed, message = bytes.fromhex(seed), bytes.fromhex(message)
            self.assertEqual(public_key(seed).hex(), public)
            self.assertEqual(sign(seed, public_key(seed), message).hex(), signature)

    def test_signature_is_over_the_canonical_form(self):
        # The known answer of package schema/signature.
        key = Key(bytes.fromhex(self.VECTORS[0][0]), "k1")
        line = '{"amount":1e+21,"ids":["b","a"],"note":"é€\\u000f","rate":0.1,"zero":0}'.encode()
        self.assertEqual(json.loads(key.attach(line))["signature"], {
            "algorithm": "Ed25519", "key_id": "k1",
            "value": "S4Vh3KYUhBnM7leWLyUQ6LARFrvNaiYa9u/bdcVxMroUr9MG2cKbkuibthIq55ZI6ItrkVaSXi0g+APh+CS/DA=="})

    def test_key_files(self):
        path = os.path.join(self.spool, "agent.key")
        key = Key.create(path, "k1")
        self.assertEqual(Key.load(path, "k1").public(), key.public())
        with self.assertRaises(FileExistsError):
            Key.create(path, "k1")
        os.chmod(path, 0o644)
        with self.assertRaisesRegex(ValueError, "chmod 600"):
            Key.load(path, "k1")

    def test_a_card_that_cannot_be_registered(self):
        recorder = self.recorder(nowhere())
        with self.assertRaisesRegex(PlumblineError, "unreachable"):
            recorder.register_card({"card_id": "ac-1"})
        loop = {"card_id": "ac-1"}
        loop["loop"] = loop
        for card in ("[]", loop, b"\xff", 7):
            with self.assertRaisesRegex(PlumblineError, "card_id"):
                recorder.register_card(card)


if __name__ == "__main__":
    unittest.main()
