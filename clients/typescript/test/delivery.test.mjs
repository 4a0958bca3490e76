// What becomes of traces while ingest answers, hangs, refuses, is away, or the agent dies.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import fs, { readdirSync, writeFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { hostname } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { Recorder } from "../dist/index.js";
import { alive } from "../dist/spool.js";
import { AGENT, Ingest, directory, nowhere, outcomes, recorder, silent, spooled, until } from "./ingest.mjs";

const numbers = (traces) => traces.map((t) => t.context.metadata.sequence_number);
const ids = (traces) => traces.map((t) => t.trace_id);

test("a session is delivered in order and ended", async (t) => {
  const ingest = await Ingest.start(t);
  const { recorder: r, spool } = recorder(t, ingest.url);
  const session = r.session();
  const recorded = Array.from({ length: 1200 }, (_, i) => session.record({ action: `step-${i}` }));
  session.end();
  assert.equal(await r.flush(), true);
  assert.deepEqual(ids(ingest.traces), recorded);
  assert.deepEqual(numbers(ingest.traces), recorded.map((_, i) => i + 1));
  assert.deepEqual(ingest.ends, [[session.sessionId, 1200]]);
  assert.equal(r.stats().accepted, 1200);
  assert.equal(r.stats().waiting, 0);
  assert.equal(await r.close(), true);
  assert.deepEqual(readdirSync(join(spool, readdirSync(spool)[0])), []);
});

test("record never waits for an ingest that hangs", async (t) => {
  const { recorder: r, spool } = recorder(t, await silent(t), { requestTimeout: 60_000 });
  const session = r.session();
  let slowest = 0;
  for (let i = 0; i < 3000; i++) {
    const began = performance.now();
    session.record({ action: "search" });
    slowest = Math.max(slowest, performance.now() - began);
  }
  assert.ok(slowest < 5000, `${slowest} ms`);
  assert.equal(await r.flush(10), false);
  const began = performance.now();
  assert.equal(await r.close(50), false);
  assert.ok(performance.now() - began < 20_000);
  assert.equal(spooled(spool).length, 3000);
});

test("what waited is sent when ingest is back", async (t) => {
  const answers = [[503, { "Retry-After": "0" }, '{"error":"unavailable","message":"the broker is away"}'], [500, {}, "oops"],
    [401, {}, '{"error":"token","message":"unknown token"}']];
  const ingest = await Ingest.start(t, () => answers.shift());
  const { recorder: r, errors } = recorder(t, ingest.url);
  const session = r.session();
  const recorded = Array.from({ length: 10 }, () => session.record({ action: "search" }));
  assert.equal(await r.flush(), true);
  assert.deepEqual(ids(ingest.traces), recorded);
  assert.deepEqual(errors.map((e) => e.kind), ["unreachable", "request"]);
  assert.match(errors[0].message, /the broker is away/);
  assert.match(errors[1].message, /unknown token/);
});

test("only lines without an outcome are sent again", async (t) => {
  const seen = [];
  const ingest = await Ingest.start(t, (_, lines) => {
    seen.push(lines);
    return seen.length === 1 ? [503, { "Retry-After": "0" }, outcomes(lines.slice(0, 4), (i) => (i < 3 ? "accepted" : "retry"))] : undefined;
  });
  const { recorder: r } = recorder(t, ingest.url);
  const session = r.session();
  for (let i = 0; i < 5; i++) session.record({ action: "search" });
  assert.equal(await r.flush(), true);
  assert.deepEqual(seen[1], seen[0].slice(3));
  assert.equal(r.stats().accepted, 5);
});

test("a kept connection that ingest has closed", async (t) => {
  const ingest = await Ingest.start(t, undefined, 1);
  const { recorder: r, errors } = recorder(t, ingest.url);
  for (let i = 0; i < 3; i++) {
    r.session().record({ action: "search" });
    assert.equal(await r.flush(), true);
  }
  assert.equal(ingest.lines.length, 3);
  assert.deepEqual(errors, []);
});

test("a disk that is full", async (t) => {
  const ingest = await Ingest.start(t);
  const { recorder: r, errors, spool } = recorder(t, ingest.url);
  const session = r.session();
  const full = t.mock.method(fs, "write", (file, data, done) => {
    fs.writeSync(file, data.subarray(0, 10));
    done(noSpace());
  });
  syncBuiltinESMExports();
  const recorded = Array.from({ length: 10 }, () => session.record({ action: "search" }));
  await until("the report", () => errors.some((e) => e.kind === "spool"));
  full.mock.restore();
  syncBuiltinESMExports();
  recorded.push(session.record({ action: "search" }));
  assert.equal(await r.flush(), true);
  assert.deepEqual(ids(ingest.traces), recorded);
  assert.deepEqual(spooled(spool), []);
});

function noSpace() {
  return Object.assign(new Error("no space left on device"), { code: "ENOSPC" });
}

/** Makes writeSync write ten bytes and fail. */
function fill(t) {
  const write = fs.writeSync;
  const full = t.mock.method(fs, "writeSync", (file, data) => {
    write(file, data.subarray(0, 10));
    throw noSpace();
  });
  syncBuiltinESMExports();
  return () => {
    full.mock.restore();
    syncBuiltinESMExports();
  };
}

test("a disk that fills keeps what was durable", async (t) => {
  const { recorder: r, errors, spool } = recorder(t, await nowhere(), { durable: true });
  const session = r.session();
  const kept = session.record({ action: "search" });
  const empty = fill(t);
  session.record({ action: "search" });
  empty();
  assert.deepEqual(spooled(spool).map((line) => JSON.parse(line).trace_id), [kept]);
  assert.ok(errors.some((e) => e.kind === "spool"));
});

test("memory is bounded while the disk is full", async (t) => {
  const { recorder: r, errors } = recorder(t, await nowhere(), { durable: true });
  const session = r.session();
  const empty = fill(t);
  const large = "x".repeat(120 << 10);
  for (let i = 0; i < 40; i++) session.record({ action: "search", parameters: { a: large, b: large, c: large, d: large, e: large } }); // each a segment
  empty();
  const { waiting, dropped } = r.stats();
  assert.ok(waiting > 20 && waiting < 28, `${waiting} traces of 600 KiB in memory`);
  assert.equal(dropped, 40 - waiting);
  assert.match(errors.find((e) => e.kind === "dropped").message, /at most 16777216 may/);
});

test("a file whose closing fails", async (t) => {
  const ingest = await Ingest.start(t);
  const { recorder: r, errors } = recorder(t, ingest.url);
  const close = fs.closeSync;
  const failing = t.mock.method(fs, "closeSync", (file) => {
    const name = fs.readlinkSync(`/proc/self/fd/${file}`);
    close(file);
    if (name.endsWith(".jsonl")) throw Object.assign(new Error("disk quota exceeded"), { code: "EDQUOT" });
  });
  syncBuiltinESMExports();
  r.session().record({ action: "search" });
  assert.equal(await r.flush(), true); // an uncaught exception would fail this test
  failing.mock.restore();
  syncBuiltinESMExports();
  assert.equal(ingest.lines.length, 1);
  assert.deepEqual(errors, []);
});

test("a delivered file that cannot be removed", async (t) => {
  const ingest = await Ingest.start(t);
  const { recorder: r, errors } = recorder(t, ingest.url);
  t.mock.method(fs.promises, "rm", async () => {
    throw Object.assign(new Error("read-only file system"), { code: "EROFS" });
  });
  for (let i = 0; i < 2; i++) {
    r.session().record({ action: "search" });
    assert.equal(await r.flush(), true);
  }
  assert.equal(ingest.lines.length, 2);
  assert.deepEqual(errors.map((e) => e.kind), ["spool"]);
});

test("a spool with files that cannot be taken over", async (t) => {
  const spool = directory(t);
  for (const [name, text] of [["1-locked", '{"trace_id":"a"}\n'], ["2-dead", ' \n{"trace_id":"b"}\n']]) {
    const owner = join(spool, "did=3Aweb=3Ashop=2Eexample", name);
    fs.mkdirSync(owner, { recursive: true });
    writeFileSync(join(owner, "owner.json"), JSON.stringify({ host: hostname(), pid: 0, started: "" }));
    writeFileSync(join(owner, "1-1.jsonl"), text);
  }
  const list = fs.promises.readdir;
  t.mock.method(fs.promises, "readdir", async (path, ...more) => {
    if (path.endsWith("1-locked")) throw Object.assign(new Error(`permission denied, ${path}`), { code: "EACCES" });
    return list(path, ...more);
  });
  const ingest = await Ingest.start(t);
  const { recorder: r, errors } = recorder(t, ingest.url, { spool });
  await until("the other owner's line", () => ingest.lines.length === 1);
  assert.equal(await r.flush(), true);
  assert.deepEqual(ids(ingest.traces), ["b"]);
  assert.deepEqual(errors.map((e) => e.kind), ["spool"]);
  assert.match(errors[0].message, /1-locked/);
});

test("an address that is no ingest", async (t) => {
  const answers = [[200, {}, "<html>a web page</html>"]];
  const ingest = await Ingest.start(t, () => answers.shift());
  const { recorder: r, errors } = recorder(t, ingest.url);
  r.session().record({ action: "search" });
  assert.equal(await r.flush(), true);
  assert.deepEqual(errors.map((e) => e.kind), ["request"]);
  assert.match(errors[0].message, /no ingest of Plumbline: 200 OK/);
});

test("an asynchronous handler that fails does not end the agent", async (t) => {
  const logged = t.mock.method(console, "error", () => {});
  const { recorder: r } = recorder(t, await nowhere(), { onError: async () => Promise.reject(new Error("the agent's own bug")) });
  r.session().record({ action: "" });
  await until("the failure is logged", () => logged.mock.callCount() === 1); // an unhandled rejection would fail this test
});

test("an agent that changes its directory", async (t) => {
  const spool = directory(t);
  fs.mkdirSync(join(spool, "elsewhere"));
  await run(await nowhere(), spool, `
await recorder.close(0);
process.chdir(${JSON.stringify(spool)});
const moved = new Recorder({ agentId: "${AGENT}", cardId: "ac-1", spool: "here" });
process.chdir("elsewhere");
moved.session().record({ action: "search" });
await moved.close(0);`);
  assert.equal(spooled(spool).length, 1);
  assert.deepEqual(readdirSync(join(spool, "elsewhere")), []);
});

test("the end of a session that is not sent", async (t) => {
  const { recorder: r, errors } = recorder(t, await nowhere());
  const session = r.session();
  await r.close(0);
  session.end();
  assert.equal(r.stats().dropped, 0);
  assert.match(errors[0].message, /the end of a session was dropped/);
});

test("refusals and warnings are heard", async (t) => {
  const warning = { code: "unknown_card", pointer: "/card_id", message: "not registered" };
  const fault = { pointer: "/action/name", message: "must not be empty" };
  const statuses = ["accepted", "refused", "forbidden", "duplicate", "accepted"];
  const ingest = await Ingest.start(t, (_, lines) => [207, {}, outcomes(lines, (i) => statuses[i],
    (i) => ({ faults: statuses[i] === "refused" ? [fault] : [], warnings: statuses[i] === "accepted" ? [warning] : [] }))]);
  const { recorder: r, errors, warnings } = recorder(t, ingest.url);
  const session = r.session();
  const recorded = statuses.map(() => session.record({ action: "search" }));
  assert.equal(await r.flush(), true);
  assert.deepEqual(errors.map((e) => [e.kind, e.traceId]), [["refused", recorded[1]], ["forbidden", recorded[2]]]);
  assert.deepEqual(errors[0].faults, [fault]);
  assert.deepEqual(warnings, [["unknown_card", "/card_id not registered", recorded[0]]]);
  const { accepted, duplicate, refused, forbidden } = r.stats();
  assert.deepEqual([accepted, duplicate, refused, forbidden], [2, 1, 1, 1]);
});

test("a proxy that takes only small requests", async (t) => {
  const ingest = await Ingest.start(t, (_, lines) => (lines.join("\n").length > 5000 ? [413, {}, "<html>too large</html>"] : undefined));
  const { recorder: r, errors } = recorder(t, ingest.url);
  const session = r.session();
  const recorded = Array.from({ length: 40 }, () => session.record({ action: "search" }));
  session.record({ action: "search", parameters: { text: "x".repeat(6000) } });
  recorded.push(session.record({ action: "search" }));
  assert.equal(await r.flush(), true);
  assert.deepEqual(ids(ingest.traces), recorded);
  assert.deepEqual(errors.map((e) => e.kind), ["refused"]);
});

test("a full spool drops, counts and says so", async (t) => {
  const { recorder: r, errors, spool } = recorder(t, await nowhere(), { spoolBytes: 20_000 });
  const session = r.session();
  for (let i = 0; i < 200; i++) session.record({ action: "search" });
  await until("drops", () => r.stats().dropped > 0);
  await r.close(0);
  const lines = spooled(spool);
  const { recorded, dropped, waiting } = r.stats();
  assert.ok(lines.join("\n").length < 20_000);
  assert.deepEqual([recorded, waiting, dropped + waiting], [200, lines.length, 200]);
  assert.equal(errors.filter((e) => e.kind === "dropped").reduce((n, e) => n + e.count, 0), dropped);
});

test("a spool that cannot be written", async (t) => {
  const file = join(directory(t), "file");
  writeFileSync(file, "");
  const ingest = await Ingest.start(t);
  const { recorder: r, errors } = recorder(t, ingest.url, { spool: file });
  const session = r.session();
  const recorded = Array.from({ length: 10 }, () => session.record({ action: "search" }));
  assert.equal(await r.flush(), true);
  assert.deepEqual(ids(ingest.traces), recorded);
  assert.ok(errors.some((e) => e.kind === "spool"));
});

test("memory only", async (t) => {
  const ingest = await Ingest.start(t);
  const { recorder: r } = recorder(t, ingest.url, { spool: false });
  r.session().record({ action: "search" });
  assert.equal(await r.flush(), true);
  const { recorder: away, errors } = recorder(t, await nowhere(), { spool: false });
  away.session().record({ action: "search" });
  assert.equal(await away.close(50), false);
  assert.deepEqual([away.stats().dropped, away.stats().waiting], [1, 0]);
  assert.ok(errors.some((e) => e.kind === "dropped"));
});

test("a loss of power", async (t) => {
  const synced = [];
  const fsync = fs.fsyncSync;
  t.mock.method(fs, "fsyncSync", (file) => {
    synced.push(fs.readlinkSync(`/proc/self/fd/${file}`));
    fsync(file);
  });
  syncBuiltinESMExports();
  t.after(() => setImmediate(syncBuiltinESMExports));
  const { recorder: r, spool } = recorder(t, await nowhere(), { durable: true });
  r.session().record({ action: "search" });
  const [file] = readdirSync(spool, { recursive: true }).filter((name) => name.endsWith(".jsonl"));
  assert.deepEqual(synced.slice(-2), [join(spool, file), dirname(join(spool, file))], "when record() of a durable recorder returns");
});

test("a closed recorder counts what it does not take", async (t) => {
  const { recorder: r, errors } = recorder(t, await nowhere());
  const session = r.session();
  await r.close(0);
  session.record({ action: "search" });
  assert.equal(r.stats().dropped, 1);
  assert.deepEqual(errors.map((e) => e.kind), ["dropped"]);
});

test("handlers may fail and may call the recorder", async (t) => {
  const logged = t.mock.method(console, "error", () => {});
  let session;
  const { recorder: r } = recorder(t, await nowhere(), {
    onError: () => {
      session.record({ action: "from the handler" });
      throw new Error("the agent's own bug");
    },
  });
  session = r.session();
  session.record({ action: "" });
  assert.equal(logged.mock.callCount(), 1);
  assert.equal(r.stats().invalid, 1);
});

test("wrong settings are refused at once", () => {
  for (const options of [{ agentId: "" }, { cardId: undefined }, { url: "ingest" }, { url: "ftp://host" }, { agentId: "a".repeat(513) },
    { durable: true, spool: false }, { token: "se cret" }, { token: "s\u00e9cret" }]) {
    assert.throws(() => new Recorder({ agentId: AGENT, cardId: "ac-1", ...options }), TypeError, JSON.stringify(options));
  }
});

/** Runs a process with a recorder to its end, or until stop resolves. */
async function run(url, spool, code, stop) {
  const module = new URL("../dist/index.js", import.meta.url);
  const head = `import { Recorder } from ${JSON.stringify(fileURLToPath(module))};\nconst recorder = new Recorder({ agentId: "${AGENT}", cardId: "ac-1", token: "", exitTimeout: 60_000 });\n`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", head + code], {
    env: { ...process.env, PLUMBLINE_URL: url, PLUMBLINE_SPOOL: spool }, stdio: ["ignore", "pipe", "inherit"],
  });
  let output = "";
  child.stdout.on("data", (part) => (output += part));
  const ended = new Promise((resolve) => child.on("close", (status, signal) => resolve({ output, status, signal })));
  if (stop !== undefined) {
    await stop();
    child.kill("SIGKILL");
  }
  return ended;
}

test("the end of the process delivers", async (t) => {
  const ingest = await Ingest.start(t);
  const { output } = await run(ingest.url, directory(t), `
const session = recorder.session("s");
for (let i = 0; i < 20; i++) console.log(session.record({ action: "search" }));
session.end();`);
  assert.deepEqual(ids(ingest.traces), output.trim().split("\n"));
  assert.deepEqual(ingest.ends, [["s", 20]]);
});

test("the end waits a bounded time for an ingest that hangs", async (t) => {
  const spool = directory(t);
  const began = performance.now();
  await run(await silent(t), spool, `
import { subscribe } from "node:diagnostics_channel";
new Recorder({ agentId: "${AGENT}", cardId: "ac-1", exitTimeout: 200 }).session().record({ action: "search" });
await recorder.close(0);
const alive = setInterval(() => {}, 1000);
await new Promise((resolve) => subscribe("net.client.socket", () => setImmediate(resolve))); // a request has begun
clearInterval(alive);`);
  assert.ok(performance.now() - began < 25_000);
  assert.equal(spooled(spool).length, 1);
});

test("process.exit spools, and the next process delivers", async (t) => {
  const spool = directory(t);
  const { output, status } = await run(await nowhere(), spool, `
for (let i = 0; i < 20; i++) console.log(recorder.session("s").record({ action: "search" }));
process.exit(3);`);
  assert.equal(status, 3);
  const recorded = output.trim().split("\n");
  assert.deepEqual(spooled(spool).map((line) => JSON.parse(line).trace_id), recorded);
  const ingest = await Ingest.start(t);
  const { recorder: r } = recorder(t, ingest.url, { spool });
  await until("the spool delivered", () => ingest.lines.length === 20);
  assert.deepEqual(ids(ingest.traces), recorded);
  assert.equal(await r.close(), true);
  assert.deepEqual(spooled(spool), []);
});

test("an exception spools when ingest is away, without a long wait", async (t) => {
  const spool = directory(t);
  const began = performance.now();
  const { status } = await run(await nowhere(), spool, `
process.on("uncaughtException", () => { process.exitCode = 4; });
recorder.session("s").record({ action: "search" });
throw new Error("the agent failed");`);
  assert.equal(status, 4);
  assert.ok(performance.now() - began < 30_000, "the end waits although ingest is away");
  assert.equal(spooled(spool).length, 1);
});

test("a killed process loses nothing that was written, and a living one keeps its file", async (t) => {
  const spool = directory(t);
  const ingest = await Ingest.start(t);
  const ended = await run(await nowhere(), spool, `recorder.session("s").record({ action: "first" }); setTimeout(() => {}, 60_000);`, async () => {
    await until("a line in the spool", () => spooled(spool).length === 1);
    const { recorder: r } = recorder(t, ingest.url, { spool });
    r.session().record({ action: "own" });
    assert.equal(await r.flush(), true);
    assert.equal(await r.close(), true);
    assert.deepEqual(ingest.traces.map((trace) => trace.action.name), ["own"]);
  });
  assert.equal(ended.signal, "SIGKILL");
  const { recorder: r } = recorder(t, ingest.url, { spool });
  await until("its line delivered", () => ingest.lines.length === 2);
  assert.equal(ingest.traces[1].action.name, "first");
  await r.close();
  assert.deepEqual(readdirSync(join(spool, readdirSync(spool)[0])), []);
});

test("a process id that is used again, and owners on other hosts", async (t) => {
  const { recorder: r, spool } = recorder(t, await nowhere(), { durable: true });
  r.session().record({ action: "search" });
  const path = join(spool, readdirSync(spool, { recursive: true }).find((name) => name.endsWith("owner.json")));
  const own = JSON.parse(fs.readFileSync(path, "utf8"));
  assert.equal(alive(dirname(path)), true);
  writeFileSync(path, JSON.stringify({ ...own, started: `${own.started}0` }));
  assert.equal(alive(dirname(path)), false, "the process with this id began at another time");
  writeFileSync(path, JSON.stringify({ ...own, host: "elsewhere" }));
  assert.equal(alive(dirname(path)), true);
  fs.utimesSync(path, 0, Date.now() / 1000 - 601);
  assert.equal(alive(dirname(path)), false);
});

test("durable survives a kill right after record", async (t) => {
  const spool = directory(t);
  const { output, signal } = await run(await nowhere(), spool, `
import { writeSync } from "node:fs";
const durable = new Recorder({ agentId: "${AGENT}", cardId: "ac-1", durable: true });
writeSync(1, durable.session("s").record({ action: "search" }));
process.kill(process.pid, "SIGKILL");`);
  assert.equal(signal, "SIGKILL");
  assert.deepEqual(spooled(spool).map((line) => JSON.parse(line).trace_id), [output]);
});
