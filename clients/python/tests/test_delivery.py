"""What becomes of traces while ingest answers, hangs, refuses, is away, or the agent dies."""
import errno
import json
import os
import signal
import subprocess
import sys
import threading
import time
import unittest
from datetime import datetime
from unittest import mock

from plumbline import Recorder
from plumbline._spool import alive
from tests.case import AGENT, ROOT, Case
from tests.ingest import Ingest, Silent, nowhere, outcomes


def full(file, data, real=os.write):
    """Is os.write on a disk that is full."""
    real(file, data[:10])
    raise OSError(errno.ENOSPC, "no space left on device")


class Delivery(Case):
    def test_session_is_delivered_in_order_and_ended(self):
        with Ingest() as ingest:
            recorder = self.recorder(ingest.url)
            with recorder.session() as session:
                ids = [session.record(f"step-{i}") for i in range(1200)]
            self.assertTrue(recorder.flush(20))
            traces = ingest.traces()
            self.assertEqual([t["trace_id"] for t in traces], ids)
            self.assertEqual([t["context"]["metadata"]["sequence_number"] for t in traces], list(range(1, 1201)))
            self.assertEqual(ingest.ends, [(session.session_id, 1200)])
            self.assertEqual(recorder.stats()["accepted"], 1200)
            self.assertEqual(recorder.stats()["waiting"], 0)
            self.assertTrue(recorder.close())
            self.assertEqual(os.listdir(os.path.join(self.spool, os.listdir(self.spool)[0])), [])

    def test_record_never_waits_for_an_ingest_that_hangs(self):
        with Silent() as silent:
            recorder = self.recorder(silent.url, request_timeout=60)
            session, slowest = recorder.session(), 0.0
            for _ in range(3000):
                began = time.perf_counter()
                session.record("search")
                slowest = max(slowest, time.perf_counter() - began)
            self.assertLess(slowest, 5)
            self.assertFalse(recorder.flush(0.01))
            began = time.perf_counter()
            self.assertFalse(recorder.close(0.05))
            self.assertLess(time.perf_counter() - began, 20)
            self.assertEqual(len(self.spooled()[0]), 3000)

    def test_what_waited_is_sent_when_ingest_is_back(self):
        answers = [(503, {"Retry-After": "0"}, b'{"error":"unavailable","message":"the broker is away"}'), (500, {}, b"oops"),
                   (401, {}, b'{"error":"token","message":"unknown token"}')]
        with Ingest(lambda path, lines: answers.pop(0) if answers else None) as ingest:
            recorder = self.recorder(ingest.url)
            session = recorder.session()
            ids = [session.record("search") for _ in range(10)]
            self.assertTrue(recorder.flush(20))
            self.assertEqual([t["trace_id"] for t in ingest.traces()], ids)
            self.assertEqual(self.kinds(), ["unreachable", "request"])
            self.assertIn("the broker is away", str(self.errors[0]))
            self.assertIn("unknown token", str(self.errors[1]))

    def test_only_lines_without_an_outcome_are_sent_again(self):
        seen = []

        def answer(path, lines):
            seen.append(lines)
            if len(seen) == 1:
                half = outcomes(lines, "accepted").splitlines(True)
                return 503, {"Retry-After": "0"}, b"".join(half[:3]) + outcomes(lines, "retry").splitlines(True)[3]
            return None

        with Ingest(answer) as ingest:
            recorder = self.recorder(ingest.url)
            session = recorder.session()
            for _ in range(5):
                session.record("search")
            self.assertTrue(recorder.flush(20))
            self.assertEqual(seen[1], seen[0][3:])
            self.assertEqual(recorder.stats()["accepted"], 5)

    def test_a_kept_connection_that_ingest_has_closed(self):
        with Ingest(most_requests=1) as ingest:
            recorder = self.recorder(ingest.url)
            for i in range(3):
                recorder.session().record("search")
                self.assertTrue(recorder.flush(20))
            self.assertEqual((len(ingest.traces()), self.errors), (3, []))

    def test_refusals_and_warnings_are_heard(self):
        warning = {"code": "unknown_card", "pointer": "/card_id", "message": "not registered"}
        fault = {"pointer": "/action/name", "message": "must not be empty"}

        def answer(path, lines):
            told = [outcomes([line], status, [fault] if status == "refused" else [], [warning] if status == "accepted" else [])
                    for line, status in zip(lines, ("accepted", "refused", "forbidden", "duplicate", "accepted"))]
            return 207, {}, b"".join(text.replace(b'"line": 1', b'"line": %d' % i) for i, text in enumerate(told, 1))

        with Ingest(answer) as ingest:
            recorder = self.recorder(ingest.url)
            session = recorder.session()
            ids = [session.record("search") for _ in range(5)]
            self.assertTrue(recorder.flush(20))
            self.assertEqual([(e.kind, e.trace_id) for e in self.errors], [("refused", ids[1]), ("forbidden", ids[2])])
            self.assertEqual(self.errors[0].faults, [("/action/name", "must not be empty")])
            self.assertEqual(self.warnings, [("unknown_card", "/card_id not registered", ids[0])])
            stats = recorder.stats()
            self.assertEqual([stats[k] for k in ("accepted", "duplicate", "refused", "forbidden")], [2, 1, 1, 1])

    def test_a_proxy_that_takes_only_small_requests(self):
        def answer(path, lines):
            size = sum(len(line) + 1 for line in lines)
            return (413, {}, b"<html>too large</html>") if size > 5000 else None

        with Ingest(answer) as ingest:
            recorder = self.recorder(ingest.url)
            session = recorder.session()
            ids = [session.record("search") for _ in range(40)]
            large = session.record("search", parameters={"text": "x" * 6000})
            ids.append(session.record("search"))
            self.assertTrue(recorder.flush(20))
            self.assertEqual([t["trace_id"] for t in ingest.traces()], ids)
            self.assertEqual(self.kinds(), ["refused"])
            self.assertNotIn(large, [t["trace_id"] for t in ingest.traces()])

    def test_a_full_spool_drops_counts_and_says_so(self):
        recorder = self.recorder(nowhere(), spool_bytes=20_000)
        session = recorder.session()
        for _ in range(200):
            session.record("search")
        self.wait("drops", lambda: recorder.stats()["dropped"] > 0)
        recorder.close(0)
        lines, size = self.spooled()
        stats = recorder.stats()
        self.assertLessEqual(size, 20_000)
        self.assertEqual(stats["recorded"], 200)
        self.assertEqual(stats["waiting"], len(lines))
        self.assertEqual(stats["dropped"] + stats["waiting"], 200)
        self.assertEqual(sum(e.count for e in self.errors if e.kind == "dropped"), stats["dropped"])

    def test_a_spool_that_cannot_be_written(self):
        file = os.path.join(self.spool, "file")
        open(file, "w").close()
        with Ingest() as ingest:
            recorder = self.recorder(ingest.url, spool=file)
            session = recorder.session()
            ids = [session.record("search") for _ in range(10)]
            self.assertTrue(recorder.flush(20))
            self.assertEqual([t["trace_id"] for t in ingest.traces()], ids)
            self.assertIn("spool", self.kinds())

    def test_a_disk_that_is_full(self):
        with Ingest() as ingest:
            recorder = self.recorder(ingest.url)
            session = recorder.session()
            with mock.patch("plumbline._spool.os.write", full):
                ids = [session.record("search") for _ in range(10)]
                self.wait("the report", lambda: "spool" in self.kinds())
            ids += [session.record("search") for _ in range(10)]
            self.assertTrue(recorder.flush(20))
            self.assertEqual([t["trace_id"] for t in ingest.traces()], ids)
        self.assertEqual(self.spooled(), ([], 0))

    def test_a_disk_that_fills_keeps_what_was_durable(self):
        recorder = self.recorder(nowhere(), durable=True)
        session = recorder.session()
        kept = session.record("search")
        with mock.patch("plumbline._spool.os.write", full):
            session.record("search")
        self.assertEqual([json.loads(line)["trace_id"] for line in self.spooled()[0]], [kept])
        self.assertIn("spool", self.kinds())

    def test_memory_is_bounded_while_the_disk_is_full(self):
        with mock.patch("plumbline._spool.os.write", full), mock.patch.multiple("plumbline._delivery", MEMORY_BYTES=20_000, SEGMENT_LINES=1):
            recorder = self.recorder(nowhere(), durable=True)
            session = recorder.session()
            for _ in range(100):
                session.record("search")
        stats = recorder.stats()
        self.assertGreater(stats["waiting"], 20)
        self.assertEqual(stats["dropped"], 100 - stats["waiting"])
        self.assertIn("at most 20000 may", str([e for e in self.errors if e.kind == "dropped"][0]))

    def test_a_file_whose_closing_fails(self):
        def close(file, real=os.close):
            name = os.readlink(f"/proc/self/fd/{file}")
            real(file)
            if name.endswith(".jsonl"):
                raise OSError(errno.EDQUOT, "disk quota exceeded")

        with Ingest() as ingest, mock.patch("plumbline._spool.os.close", close):
            recorder = self.recorder(ingest.url)
            recorder.session().record("search")
            self.assertTrue(recorder.flush(20))
            self.assertEqual((len(ingest.traces()), self.errors), (1, []))

    def test_a_delivered_file_that_cannot_be_removed(self):
        with Ingest() as ingest:
            recorder = self.recorder(ingest.url)
            with mock.patch("plumbline._spool.os.unlink", side_effect=OSError(errno.EROFS, "read-only file system")):
                for i in range(2):
                    recorder.session().record("search")
                    self.assertTrue(recorder.flush(20))
            self.assertEqual(len(ingest.traces()), 2)
            self.assertEqual(self.kinds(), ["spool"])

    def test_a_spool_with_files_that_cannot_be_taken_over(self):
        lines = {"1-locked": ['{"trace_id":"a"}'], "2-dead": [" ", '{"trace_id":"b"}']}
        for name, text in lines.items():
            owner = os.path.join(self.spool, "did=3Aweb=3Ashop=2Eexample", name)
            os.makedirs(owner)
            for file, contents in (("owner.json", json.dumps({"host": os.uname().nodename, "pid": 0, "started": ""})), ("1-1.jsonl", "\n".join(text) + "\n")):
                with open(os.path.join(owner, file), "w") as f:
                    f.write(contents)

        def listed(path, real=os.listdir):
            if str(path).endswith("1-locked"):
                raise PermissionError(errno.EACCES, "permission denied", path)
            return real(path)

        with Ingest() as ingest, mock.patch("plumbline._spool.os.listdir", listed):
            recorder = self.recorder(ingest.url)
            self.wait("the other owner's line", lambda: [t["trace_id"] for t in ingest.traces()] == ["b"])
            self.assertTrue(recorder.flush(20))
            self.assertEqual(self.kinds(), ["spool"])
            self.assertIn("1-locked", str(self.errors[0]))

    def test_an_address_that_is_no_ingest(self):
        answers = [(200, {}, b"<html>a web page</html>")]
        with Ingest(lambda path, lines: answers.pop(0) if answers else None) as ingest:
            recorder = self.recorder(ingest.url)
            recorder.session().record("search")
            self.assertTrue(recorder.flush(20))
            self.assertEqual(self.kinds(), ["request"])
            self.assertIn("no ingest of Plumbline: 200 OK", str(self.errors[0]))

    def test_a_signal_handler_may_record_and_close(self):
        recorder = self.recorder(nowhere())
        session = recorder.session()

        class Interrupted(datetime):
            """A signal arrives while the session gives a number."""

            @classmethod
            def now(cls, zone=None):
                with mock.patch("plumbline._session.datetime", datetime):
                    session.record("in the handler")
                    recorder.close(0)
                return datetime.now(zone)

        with mock.patch("plumbline._session.datetime", Interrupted):
            agent = threading.Thread(target=session.record, args=("search",), daemon=True)
            agent.start()
            agent.join(20)
        self.assertFalse(agent.is_alive(), "the agent waits for itself")
        self.assertEqual(recorder.stats()["recorded"], 2)

    def test_memory_only(self):
        with Ingest() as ingest:
            recorder = self.recorder(ingest.url, spool=False)
            recorder.session().record("search")
            self.assertTrue(recorder.flush(20))
        recorder = self.recorder(nowhere(), spool=False)
        recorder.session().record("search")
        self.assertFalse(recorder.close(0.05))
        self.assertEqual((recorder.stats()["dropped"], recorder.stats()["waiting"]), (1, 0))
        self.assertIn("dropped", self.kinds())

    def test_a_loss_of_power(self):
        synced = []

        def fsync(file, real=os.fsync):
            synced.append(os.readlink(f"/proc/self/fd/{file}"))
            real(file)

        with mock.patch("os.fsync", fsync):
            recorder = self.recorder(nowhere(), durable=True)
            recorder.session().record("search")
            own = recorder._delivery._spool.own
            self.assertEqual(synced[-2:], [os.path.join(own, "1-000000000001.jsonl"), own], "when record() of a durable recorder returns")
            recorder.close(0)
            synced.clear()
            recorder = self.recorder(nowhere(), spool=os.path.join(self.spool, "other"))
            recorder.session().record("search")
            self.wait("the sync of a file that waits", lambda: any(path.endswith("other/did=3Aweb=3Ashop=2Eexample/" + os.path.basename(
                recorder._delivery._spool.own or "?") + "/1-000000000001.jsonl") for path in synced))

    def test_a_closed_recorder_counts_what_it_does_not_take(self):
        recorder = self.recorder(nowhere())
        session = recorder.session()
        recorder.close(0)
        session.record("search")
        self.assertEqual((recorder.stats()["dropped"], self.kinds()), (1, ["dropped"]))

    def test_the_end_of_a_session_that_is_not_sent(self):
        recorder = self.recorder(nowhere())
        with recorder.session():
            recorder.close(0)
        self.assertEqual((recorder.stats()["dropped"], self.kinds()), (0, ["dropped"]))
        self.assertIn("the end of a session was dropped", str(self.errors[0]))

    def test_handlers_may_fail_and_may_call_the_recorder(self):
        def handler(error):
            recorder.stats()
            session.record("from the handler")
            raise RuntimeError("the agent's own bug")

        with Ingest(), self.assertLogs("plumbline", "ERROR") as logs:
            recorder = self.recorder(nowhere(), on_error=handler, durable=True)
            session = recorder.session()
            session.record("")
            self.wait("a handler's failure", lambda: logs.output)
        self.assertEqual(recorder.stats()["invalid"], 1)

    def test_many_threads_number_without_gaps(self):
        with Ingest() as ingest:
            recorder = self.recorder(ingest.url)
            session = recorder.session()
            threads = [threading.Thread(target=lambda: [session.record("search") for _ in range(100)]) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertTrue(recorder.flush(20))
            traces = sorted(ingest.traces(), key=lambda t: t["context"]["metadata"]["sequence_number"])
            self.assertEqual([t["context"]["metadata"]["sequence_number"] for t in traces], list(range(1, 801)))
            self.assertEqual([t["timestamp"] for t in traces], sorted(t["timestamp"] for t in traces))


class Processes(Case):
    def test_exit_delivers(self):
        with Ingest() as ingest:
            agent = self.process(ingest.url, """
with recorder.session('s') as session:
    for i in range(20): print(session.record('search'))
""")
            ids = agent.communicate(timeout=30)[0].split()
            self.assertEqual([t["trace_id"] for t in ingest.traces()], ids)
            self.assertEqual((len(ids), ingest.ends), (20, [("s", 20)]))

    def test_exit_waits_a_bounded_time_for_an_ingest_that_hangs(self):
        with Silent() as silent:
            began = time.monotonic()
            agent = self.process(silent.url, """
Recorder('did:web:shop.example', 'ac-1', exit_timeout=0.2).session().record('search')
recorder.close(0)
""")
            agent.communicate(timeout=60)
            self.assertLess(time.monotonic() - began, 25)
        self.assertEqual(len(self.spooled()[0]), 1)

    def test_exit_with_an_exception_spools_and_the_next_process_delivers(self):
        agent = self.process(nowhere(), """
for i in range(20): print(recorder.session('s').record('search'))
sys.exit('the agent failed')
""")
        began = time.monotonic()
        ids = agent.communicate(timeout=30)[0].split()
        self.assertLess(time.monotonic() - began, 30, "the end waits although ingest is away")
        self.assertEqual([json.loads(line)["trace_id"] for line in self.spooled()[0]], ids)
        with Ingest() as ingest:
            recorder = self.recorder(ingest.url)
            ids.append(recorder.session().record("search"))
            self.wait("the spool delivered", lambda: len(ingest.traces()) == 21)
            self.assertCountEqual([t["trace_id"] for t in ingest.traces()], ids)
            self.assertTrue(recorder.close())
        self.assertEqual(self.spooled(), ([], 0))

    def test_a_killed_process_loses_nothing_that_was_written(self):
        agent = self.process(nowhere(), """
recorder.session('s').record('first')
time.sleep(60)
""")
        self.wait("a line in the spool", lambda: self.spooled()[0])
        with Ingest() as ingest:
            recorder = self.recorder(ingest.url)
            recorder.session().record("own")
            self.assertTrue(recorder.flush(20))
            self.assertEqual(len(ingest.traces()), 1, "the file of a living process was taken")
            agent.kill()
            agent.communicate()
            recorder._delivery._tidy()
            self.wait("its line delivered", lambda: len(ingest.traces()) == 2)
            self.assertEqual(ingest.traces()[1]["action"]["name"], "first")
            recorder.close()
        directory = os.path.join(self.spool, os.listdir(self.spool)[0])
        self.assertEqual(os.listdir(directory), [])

    def test_durable_survives_a_kill_right_after_record(self):
        agent = self.process(nowhere(), """
recorder = Recorder('did:web:shop.example', 'ac-1', durable=True)
print(recorder.session('s').record('search'), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
""")
        ids = agent.communicate(timeout=30)[0].split()
        self.assertEqual(agent.returncode, -signal.SIGKILL)
        self.assertEqual([json.loads(line)["trace_id"] for line in self.spooled()[0]], ids)

    def test_a_process_id_that_is_used_again(self):
        recorder = self.recorder(nowhere(), durable=True)
        recorder.session().record("search")
        own = recorder._delivery._spool.own
        self.assertTrue(alive(own))
        with open(os.path.join(own, "owner.json"), "r+") as file:
            owner = json.load(file)
            file.seek(0)
            json.dump({**owner, "started": owner["started"][:-1] + "x"}, file)
        self.assertFalse(alive(own), "the process with this id began at another time")

    def test_owners_on_other_hosts(self):
        owner = os.path.join(self.spool, "owner.json")
        with open(owner, "w") as file:
            json.dump({"host": "elsewhere", "pid": os.getpid(), "started": ""}, file)
        self.assertTrue(alive(self.spool))
        os.utime(owner, (0, time.time() - 601))
        self.assertFalse(alive(self.spool))

    def test_fork(self):
        with Ingest() as ingest:
            agent = self.process(ingest.url, """
session = recorder.session('s')
session.record('before')
child = os.fork()
session.record('after in ' + ('the parent' if child else 'the child'))
if child:
    os.waitpid(child, 0)
    recorder.close()
else:
    recorder.close()
    os._exit(0)
""")
            agent.communicate(timeout=30)
            self.assertCountEqual([t["action"]["name"] for t in ingest.traces()], ["before", "after in the parent", "after in the child"])

    def test_fork_while_another_thread_records(self):
        with Ingest() as ingest:
            agent = self.process(ingest.url, """
import threading
from datetime import datetime
import plumbline._session
taking, forked = threading.Event(), threading.Event()
class Slow(datetime):
    @classmethod
    def now(cls, zone=None):
        if threading.current_thread() is not threading.main_thread():
            taking.set()
            forked.wait()
        return datetime.now(zone)
plumbline._session.datetime = Slow
session = recorder.session('s')
thread = threading.Thread(target=session.record, args=('thread',))
thread.start()
taking.wait()
child = os.fork()
if not child:
    signal.alarm(20)
    session.record('child')
    recorder.close()
    os._exit(0)
forked.set()
thread.join()
print(os.waitpid(child, 0)[1])
""")
            self.assertEqual(agent.communicate(timeout=60)[0], "0\n", "the child was killed by its alarm")
            self.assertCountEqual([t["action"]["name"] for t in ingest.traces()], ["thread", "child"])

    def test_a_child_of_multiprocessing(self):
        script = os.path.join(self.spool, "agent.py")
        with open(script, "w") as file:
            file.write("""
import multiprocessing, sys
from plumbline import Recorder
recorder = Recorder("did:web:shop.example", "ac-1", token="")
def work():
    recorder.session("s").record(sys.argv[1])
if __name__ == "__main__":
    child = multiprocessing.get_context(sys.argv[1]).Process(target=work)
    child.start()
    child.join()
""")
        for method in ("fork", "spawn", "forkserver"):
            with Ingest() as ingest:
                subprocess.run([sys.executable, script, method], timeout=60, check=True, env={
                    **os.environ, "PYTHONPATH": ROOT, "PLUMBLINE_URL": ingest.url, "PLUMBLINE_SPOOL": os.path.join(self.spool, method), "PYTHONDONTWRITEBYTECODE": "1"})
                self.assertEqual([t["action"]["name"] for t in ingest.traces()], [method])

    def test_an_agent_that_changes_its_directory(self):
        agent = self.process(nowhere(), f"""
recorder.close(0)
os.makedirs({self.spool!r} + '/elsewhere')
os.chdir({self.spool!r})
recorder = Recorder('did:web:shop.example', 'ac-1', spool='here', durable=True)
os.chdir('elsewhere')
recorder.session().record('search')
recorder.close(0)
""")
        agent.communicate(timeout=60)
        self.assertEqual(len(self.spooled()[0]), 1)
        self.assertEqual(os.listdir(os.path.join(self.spool, "elsewhere")), [])

    def test_a_record_at_the_very_end_is_not_lost(self):
        with Ingest() as ingest:
            agent = self.process(ingest.url, """
import atexit
late = Recorder('did:web:shop.example', 'ac-1')
atexit.register(lambda: late.session().record('in atexit'))
""")
            agent.communicate(timeout=30)
            recorder = self.recorder(ingest.url)
            self.wait("the last record", lambda: [t["action"]["name"] for t in ingest.traces()] == ["in atexit"])
            recorder.close()


class Settings(unittest.TestCase):
    def test_wrong_settings_are_refused_at_once(self):
        for options in ({"agent_id": ""}, {"card_id": None}, {"url": "ingest:8080"}, {"url": "ftp://host"}, {"agent_id": "a" * 513},
                        {"durable": True, "spool": False}, {"on_error": on_error}, {"token": "se cret"}, {"token": "s\u00e9cret"}):
            with self.assertRaises(ValueError, msg=str(options)) as refused:
                Recorder(**{"agent_id": AGENT, "card_id": "ac-1", "spool": False, **options})
            self.assertNotIn("cret", str(refused.exception))

    def test_a_token_from_a_file_that_ends_with_a_line_feed(self):
        self.assertEqual(Recorder(AGENT, "ac-1", token="secret\n", spool=False)._connection()._headers, {"Authorization": "Bearer secret"})


async def on_error(error):
    """Is no handler: nobody would await it."""


if __name__ == "__main__":
    unittest.main()
