// An ingest that a test controls, and what the tests of a recorder share.
import { mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import * as http from "node:http";
import * as net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { Recorder } from "../dist/index.js";

export const AGENT = "did:web:shop.example";

export class Ingest {
  lines = [];
  ends = [];

  /** answer(path, lines) may return [code, headers, body] instead of accepting. A connection has mostRequests. */
  static async start(t, answer = () => undefined, mostRequests = Infinity) {
    const ingest = new Ingest();
    const server = http.createServer((request, response) => {
      request.socket.served = (request.socket.served ?? 0) + 1;
      if (request.socket.served > mostRequests) return request.socket.destroy(); // as if the connection was closed just before
      const parts = [];
      request.on("data", (part) => parts.push(part));
      request.on("end", () => {
        const [code, headers, body] = ingest.handle(request.url, Buffer.concat(parts).toString(), answer);
        response.writeHead(code, headers);
        response.end(body);
      });
    });
    await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
    t.after(() => {
      server.close();
      server.closeAllConnections();
    });
    ingest.url = `http://127.0.0.1:${server.address().port}`;
    return ingest;
  }

  handle(path, body, answer) {
    const lines = body.split("\n").filter((line) => line !== "");
    const other = answer(path, lines);
    if (other !== undefined) return other;
    if (path === "/v1/sessions/end") {
      this.ends.push([JSON.parse(body).session_id, this.lines.length]);
      return [202, {}, "{}"];
    }
    this.lines.push(...lines);
    return [200, {}, outcomes(lines, () => "accepted")];
  }

  get traces() {
    return this.lines.map((line) => JSON.parse(line));
  }
}

export function outcomes(lines, status, more = () => ({})) {
  return lines
    .map((line, i) => JSON.stringify({ line: i + 1, trace_id: JSON.parse(line).trace_id, status: status(i), faults: [], ...more(i) }) + "\n")
    .join("");
}

/** Returns the address of a listener that accepts connections and says nothing. */
export async function silent(t) {
  const sockets = [];
  const server = net.createServer((socket) => sockets.push(socket.on("error", () => {})));
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return `http://127.0.0.1:${server.address().port}`;
}

/** Returns an address where nobody listens. */
export async function nowhere() {
  const server = net.createServer();
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return `http://127.0.0.1:${port}`;
}

/** Returns a recorder with a spool of its own, and what it reported. */
export function recorder(t, url, options = {}) {
  const errors = [];
  const warnings = [];
  const spool = options.spool ?? directory(t);
  const made = new Recorder({
    agentId: AGENT, cardId: "ac-1", url, token: "", spool, onError: (error) => errors.push(error),
    onWarning: (...warning) => warnings.push(warning), ...options,
  });
  t.after(() => made.close(0));
  return { recorder: made, errors, warnings, spool };
}

export function directory(t) {
  const path = mkdtempSync(join(tmpdir(), "plumbline-"));
  t.after(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** Returns the lines in a spool. */
export function spooled(directory) {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.name.endsWith(".jsonl"))
    .flatMap((entry) => readFileSync(join(entry.parentPath ?? entry.path, entry.name), "utf8").split("\n").filter((line) => line !== ""));
}

export async function until(what, holds, seconds = 20) {
  for (const end = performance.now() + seconds * 1000; !holds(); await new Promise((resolve) => setTimeout(resolve, 5))) {
    if (performance.now() > end) throw new Error(`waited for ${what}`);
  }
}
