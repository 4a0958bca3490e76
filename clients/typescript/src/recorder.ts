/** Recorder: what an agent's code uses. See docs/CLIENTS.md. */
import { Delivery, type Stats } from "./delivery.js";
import { Connection, type TLSOptions } from "./http.js";
import type { Key } from "./keys.js";
import { PlumblineError, Reporter, textOf, type OnError, type OnWarning } from "./report.js";
import { Counter, Session, type Owner, type Place } from "./session.js";
import { Spool, defaultRoot } from "./spool.js";
import { MAX_ID_BYTES, MAX_TRACE_BYTES, build, check, type Decision } from "./trace.js";
import { MAX_VALUE_BYTES, canonical, plain, type JsonObject } from "./values.js";

const DEFAULT_URL = "http://127.0.0.1:8080";
const REQUEST_MILLISECONDS = 30_000;
const MAX_SESSIONS = 1000; // ids whose numbers are remembered

/** What a value may have: the next smaller one if the trace is too large. */
const VALUE_BYTES = [MAX_VALUE_BYTES, 16 << 10, 1 << 10];

export interface RecorderOptions {
  agentId: string;
  cardId: string;
  url?: string;
  token?: string;
  /** The directory that keeps traces until they are stored; false: in memory only. */
  spool?: string | false;
  spoolBytes?: number;
  key?: Key;
  /** record() returns once the trace is on this machine's disk. */
  durable?: boolean;
  onError?: OnError;
  onWarning?: OnWarning;
  /** Milliseconds that the end of the process waits for delivery. */
  exitTimeout?: number;
  tls?: TLSOptions;
  /** Milliseconds that a request waits for its answer. */
  requestTimeout?: number;
}

export interface SessionOptions {
  /** The first number of its traces; null: they have no numbers. */
  firstNumber?: number | null;
  /** Whether the end of an "await using" block ends the session. */
  end?: boolean;
}

/** Puts what one agent decides on record. */
export class Recorder {
  readonly agentId: string;
  readonly cardId: string;
  readonly #url: string;
  readonly #connect: () => Connection;
  readonly #key: Key | undefined;
  readonly #reporter: Reporter;
  readonly #delivery: Delivery;
  readonly #exitTimeout: number;
  readonly #counters = new Map<string, Counter>();
  readonly #owner: Owner;

  constructor(options: RecorderOptions) {
    for (const name of ["agentId", "cardId"] as const) {
      const value: unknown = options[name];
      const size = typeof value === "string" ? Buffer.byteLength(value) : 0;
      if (size < 1 || size > MAX_ID_BYTES) throw new TypeError(`${name} ${JSON.stringify(value)}: want a text of 1 to ${MAX_ID_BYTES} bytes`);
    }
    if (options.durable === true && options.spool === false) throw new TypeError("durable: true needs a spool");
    this.agentId = options.agentId;
    this.cardId = options.cardId;
    this.#url = options.url || process.env["PLUMBLINE_URL"] || DEFAULT_URL;
    const token = (options.token ?? process.env["PLUMBLINE_TOKEN"] ?? "").trim();
    if (!/^[!-~]*$/.test(token)) throw new TypeError("token: it has a character that no token has, such as a space or a line feed");
    this.#connect = () => new Connection(this.#url, token, options.tls, options.requestTimeout ?? REQUEST_MILLISECONDS);
    this.#key = options.key;
    this.#reporter = new Reporter(options.onError, options.onWarning);
    this.#exitTimeout = options.exitTimeout ?? 5000;
    this.#delivery = new Delivery({
      connection: this.#connect(), spool: new Spool(options.spool === false ? undefined : options.spool ?? defaultRoot(), this.agentId),
      spoolBytes: options.spoolBytes ?? 256 << 20, durable: options.durable ?? false, reporter: this.#reporter, url: this.#url,
    });
    this.#owner = {
      record: (traceId, sessionId, place, decision) => this.#record(traceId, sessionId, place, decision),
      end: (sessionId) => this.#delivery.submitEnd(canonical({ end_session: { agent_id: this.agentId, session_id: plain(sessionId) } })),
      leftOut: () => this.#leftOut(),
      ignored: (method, given, known) => {
        for (const name of Object.keys(given ?? {})) {
          if (!known.has(name)) this.#reporter.warning("ignored_argument", `${method} has no member ${JSON.stringify(name)}, and ignores it`, "");
        }
      },
      invalid: (reason) => this.#reporter.error("invalid", reason),
    };
    atExit.add(this);
  }

  /** Begins a session, or continues the one with that id. */
  session(sessionId?: string, options: SessionOptions = {}): Session {
    let first = options.firstNumber === undefined ? 1 : options.firstNumber ?? undefined;
    if (first !== undefined && !Number.isInteger(first)) {
      this.#reporter.error("invalid", `session(): firstNumber is ${textOf(first)}, want an integer: its traces have no numbers`);
      first = undefined;
    }
    const id = textOf(sessionId || crypto.randomUUID());
    let counter = new Counter(first);
    if (first !== undefined) {
      const known = this.#counters.get(id);
      if (known?.next !== undefined && known.next > first) counter = known;
      this.#counters.delete(id);
      this.#counters.set(id, counter); // as the newest
      if (this.#counters.size > MAX_SESSIONS) this.#counters.delete(this.#counters.keys().next().value as string);
    }
    return new Session(this.#owner, id, counter, options.end ?? true);
  }

  /** Waits until ingest has answered for everything recorded so far; returns whether it has. */
  flush(milliseconds = 30_000): Promise<boolean> {
    return this.#delivery.flush(milliseconds);
  }

  /** Flushes, then stops the recorder. What ingest has not answered for stays in the spool. */
  async close(milliseconds = 30_000): Promise<boolean> {
    const done = await this.#delivery.close(milliseconds);
    atExit.delete(this);
    return done;
  }

  /** Returns how many traces were recorded, accepted, duplicate, refused, forbidden, invalid, dropped, and wait. */
  stats(): Stats {
    return this.#delivery.stats();
  }

  /** Registers the agent's card. It waits, and rejects with PlumblineError. */
  async registerCard(card: object | string): Promise<"registered" | "unchanged"> {
    let [raw, parsed]: [string, JsonObject] = ["", {}];
    try {
      raw = typeof card === "string" ? card : canonical(plain(card));
      parsed = JSON.parse(raw) as JsonObject;
    } catch {
      // Not JSON, or too deep: it has no card_id.
    }
    if (typeof parsed?.["card_id"] !== "string") throw new PlumblineError("invalid", "this card is no JSON object with a card_id");
    const { signature, ...unsigned } = parsed;
    if (this.#key !== undefined && !signature && lists(parsed, this.#key)) raw = this.#key.attach(canonical(plain(unsigned)));
    const connection = this.#connect();
    try {
      const path = `/v1/cards/${encodeURIComponent(parsed["card_id"])}`;
      const answer = await connection.send("PUT", path, "application/aap-alignment-card+json", raw, true).catch((error: unknown) => {
        throw new PlumblineError("unreachable", `${this.#url} cannot be reached: ${textOf(error)}`);
      });
      if (answer.code === 200) return "unchanged";
      if (answer.code === 201) return "registered";
      const { word, message, faults } = answer.problem();
      throw new PlumblineError("refused", `register card ${parsed["card_id"]}: ${message} (HTTP ${answer.code} ${word})`, "", faults);
    } finally {
      connection.close();
    }
  }

  #record(traceId: unknown, sessionId: string, place: Place, decision: Decision): void {
    try {
      const head = { trace_id: plain(traceId), agent_id: this.agentId, card_id: this.cardId, timestamp: plain(decision.timestamp ?? place.timestamp) };
      const limit = MAX_TRACE_BYTES - (this.#key === undefined ? 0 : 1024); // room for the signature
      let [trace, line, size]: [JsonObject, string, number] = [{}, "", Infinity];
      for (const most of VALUE_BYTES) {
        if (size <= limit) break;
        trace = build(head, sessionId, place.number, decision, () => this.#leftOut(), most);
        line = canonical(trace);
        size = Buffer.byteLength(line);
      }
      const faults = check(trace);
      if (size > limit) faults.push({ pointer: "", message: `${size} bytes, a trace may have ${limit}` });
      if (faults.length > 0) {
        this.#delivery.invalid();
        this.#reporter.error("invalid", "this is no valid trace and was not sent", textOf(traceId), faults);
        return;
      }
      this.#delivery.submit(this.#key === undefined ? line : this.#key.attach(line));
    } catch (error) {
      this.#delivery.invalid();
      this.#reporter.error("invalid", textOf(error), textOf(traceId));
    }
  }

  #leftOut(): void {
    this.#reporter.warning("left_out", "a value is too large or too deep, and is left out of the trace", "");
  }

  /** @internal */
  async closeAtExit(): Promise<void> {
    await this.#delivery.close(this.#exitTimeout, true);
    atExit.delete(this);
  }

  /** @internal */
  closeSync(): void {
    this.#delivery.closeSync();
  }
}

/** Reports whether extensions.plumbline.keys of a card has the key. */
function lists(card: JsonObject, key: Key): boolean {
  let of: unknown = card;
  for (const name of ["extensions", "plumbline", "keys"]) of = (of as JsonObject | null | undefined)?.[name];
  const own = canonical(key.public());
  return Array.isArray(of) && of.some((entry) => canonical(plain(entry)) === own);
}

/** The recorders to close when the process ends. */
const atExit = new Set<Recorder>();

process.on("beforeExit", () => {
  for (const recorder of [...atExit]) void recorder.closeAtExit();
});
process.on("exit", () => {
  for (const recorder of atExit) recorder.closeSync();
});
