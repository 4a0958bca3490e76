/**
 * Delivers lines to ingest. One task writes them to the spool, one sends what the spool has.
 *
 * A line is in exactly one of these: the queue (memory), the open segment, the backlog, or the
 * segment that is being sent. A segment leaves when each of its lines has an outcome.
 */
import { Connection, faultsOf, type Answer } from "./http.js";
import { textOf, type ErrorKind, type Reporter } from "./report.js";
import { Segment, type Spool } from "./spool.js";

const SEGMENT_LINES = 500;
const SEGMENT_BYTES = 512 << 10;
const SEGMENT_MILLISECONDS = 250;
const MEMORY_BYTES = 16 << 20; // of the queue, and of segments without a file
const IDLE_MILLISECONDS = 10_000; // between two looks at what was held back
const TIDY_MILLISECONDS = 60_000; // between two looks for dead owners
const [FIRST_PAUSE, LONGEST_PAUSE, LONGEST_REQUEST] = [250, 30_000, 300_000];

const END = '{"end_session":'; // begins a line that ends a session; every other line is a trace

/** How many traces were recorded, what became of them, and how many have no answer yet. */
export interface Stats {
  recorded: number;
  accepted: number;
  duplicate: number;
  refused: number;
  forbidden: number;
  invalid: number;
  dropped: number;
  waiting: number;
}

/** The lines must be sent again. after is what ingest asked for, in seconds. */
class Wait extends Error {
  constructor(readonly kind: ErrorKind, message: string, readonly after?: number) {
    super(message);
  }
}

interface Outcome {
  line?: number;
  trace_id?: string;
  status?: string;
  faults?: unknown;
  warnings?: { code?: string; pointer?: string; message?: string }[];
}

export interface DeliveryOptions {
  connection: Connection;
  spool: Spool;
  spoolBytes: number;
  durable: boolean;
  reporter: Reporter;
  url: string;
}

export class Delivery {
  readonly #o: DeliveryOptions;
  readonly #counts: Stats = { recorded: 0, accepted: 0, duplicate: 0, refused: 0, forbidden: 0, invalid: 0, dropped: 0, waiting: 0 };
  readonly #timers: NodeJS.Timeout[] = [];
  #queue: string[] = [];
  #queuedBytes = 0;
  #writing: string[] | undefined; // the lines of an unfinished write
  #open: Segment | undefined;
  #backlog: Segment[] = [];
  #current: Segment | undefined;
  #sending = false;
  #bytes = 0; // of all segments
  #due: NodeJS.Timeout | undefined; // when the open segment is to be sent
  #closed = false;
  #stopped = false;
  #kicked = false;
  #failures = 0; // attempts to send that failed, in all
  #mostLines = SEGMENT_LINES;
  #wake: () => void = () => undefined; // ends a pause
  #watchers: (() => void)[] = []; // called when something changed

  constructor(options: DeliveryOptions) {
    this.#o = options;
    if (options.spool.agent !== undefined) {
      try {
        options.spool.enter();
      } catch (error) {
        this.#unwritable(error);
      }
    }
    this.#timers.push(setInterval(() => void this.#tidy(), TIDY_MILLISECONDS).unref());
    this.#timers.push(setInterval(() => options.reporter.release(), IDLE_MILLISECONDS).unref());
    setImmediate(() => void this.#tidy()).unref(); // also sends what an earlier process left
  }

  // What the agent calls. None of these waits.

  /** Takes a trace, or drops and counts it. */
  submit(line: string): void {
    this.#counts.recorded++;
    if (this.#closed) return this.#drop(1, "the recorder is closed");
    if (this.#queuedBytes + line.length > MEMORY_BYTES) return this.#drop(1, "the queue is full, because the spool is written too slowly");
    this.#counts.waiting++;
    this.#put(line);
  }

  submitEnd(line: string): void {
    if (this.#closed) return this.#drop(0, "the recorder is closed");
    if (this.#queuedBytes + line.length > MEMORY_BYTES) return this.#drop(0, "the queue is full");
    this.#put(line);
  }

  invalid(): void {
    this.#counts.recorded++;
    this.#counts.invalid++;
  }

  stats(): Stats {
    return { ...this.#counts };
  }

  #put(line: string): void {
    if (this.#o.durable) return this.#storeSync([line], true);
    this.#queue.push(line);
    this.#queuedBytes += line.length;
    if (this.#queue.length === 1 && this.#writing === undefined) setImmediate(() => void this.#write());
  }

  /** Counts dropped traces; none are the end of a session. */
  #drop(traces: number, why: string): void {
    this.#counts.dropped += traces;
    const what = traces > 0 ? "traces were dropped" : "the end of a session was dropped, so it ends when it is idle";
    this.#o.reporter.error("dropped", `${what}: ${why}`, "", [], traces);
  }

  // What waits.

  /** Waits until every line has an outcome; with leaveEarly, only for one more attempt. */
  async flush(milliseconds: number, leaveEarly = false): Promise<boolean> {
    const failures = this.#failures;
    const early = leaveEarly && this.#o.spool.agent !== undefined;
    const over = (): boolean => this.#idle() || (early && this.#spooled() && this.#failures > failures);
    await this.#write();
    this.#rotate();
    this.#kicked = true;
    this.#wake();
    await new Promise<void>((resolve) => {
      const timer = setTimeout(end, milliseconds); // keeps the process alive
      const watchers = this.#watchers;
      function end(): void {
        clearTimeout(timer);
        watchers.splice(watchers.indexOf(look), 1);
        resolve();
      }
      function look(): void {
        if (over()) end();
      }
      watchers.push(look);
      look();
    });
    return this.#idle();
  }

  #changed(): void {
    for (const look of [...this.#watchers]) look();
  }

  #idle(): boolean {
    return this.#queue.length === 0 && this.#writing === undefined && this.#backlog.length === 0 && this.#current === undefined && !this.#open?.size;
  }

  #spooled(): boolean {
    return this.#queue.length === 0 && this.#writing === undefined && [...this.#backlog, this.#current].every((s) => s === undefined || s.path !== undefined);
  }

  /** Flushes, then ends the delivery. What has no outcome stays in the spool. */
  async close(milliseconds: number, leaveEarly = false): Promise<boolean> {
    if (this.#closed) return this.#idle();
    this.#closed = true;
    const done = await this.flush(milliseconds, leaveEarly);
    this.closeSync();
    return done;
  }

  /** Ends the delivery at once. What has no outcome stays in the spool. */
  closeSync(): void {
    if (this.#stopped) return;
    this.#closed = this.#stopped = true;
    // An unfinished write may be finished or not: to send its lines twice is harmless.
    const lines = [...(this.#writing ?? []), ...this.#queue];
    this.#queue = [];
    if (this.#writing !== undefined) this.#open = undefined;
    this.#storeSync(lines, false);
    for (const timer of this.#timers) clearInterval(timer);
    clearTimeout(this.#due);
    this.#wake();
    const segments = [...this.#backlog, this.#current, this.#open].filter((s) => s !== undefined);
    const lost = segments.filter((s) => s.path === undefined).reduce((n, s) => n + s.traces, 0);
    this.#open?.close();
    this.#counts.waiting -= lost;
    if (lost > 0) this.#drop(lost, "the recorder is closed, and they are not in the spool");
    try {
      this.#o.spool.leave();
    } catch (error) {
      this.#o.reporter.error("spool", `leave ${this.#o.spool.agent}: ${textOf(error)}`);
    }
    this.#o.connection.close();
    this.#o.reporter.release(true);
  }

  // The task that writes.

  async #write(): Promise<void> {
    while (this.#writing !== undefined) await new Promise<void>((resolve) => this.#watchOnce(resolve));
    try {
      while (this.#queue.length > 0 && !this.#stopped) {
        this.#writing = this.#queue;
        this.#queue = [];
        this.#queuedBytes = 0;
        for (const [segment, part] of this.#parts(this.#writing)) {
          try {
            await segment.append(part);
          } catch (error) {
            this.#moveToMemory(segment, part, error);
          }
          this.#ripen();
        }
        this.#writing = undefined;
      }
    } catch (error) {
      this.#writing = undefined;
      this.#o.reporter.internal("write", error);
    }
    this.#changed();
  }

  #watchOnce(resolve: () => void): void {
    const look = (): void => {
      this.#watchers.splice(this.#watchers.indexOf(look), 1);
      resolve();
    };
    this.#watchers.push(look);
  }

  #storeSync(lines: string[], sync: boolean): void {
    for (const [segment, part] of this.#parts(lines)) {
      try {
        segment.appendSync(part, sync);
      } catch (error) {
        this.#moveToMemory(segment, part, error);
      }
      this.#ripen();
    }
  }

  /** Divides lines among segments. Lines that there is no room for are dropped. */
  *#parts(lines: string[]): Generator<[Segment, string[]]> {
    for (let from = 0; from < lines.length; ) {
      const segment = (this.#open ??= this.#newSegment());
      let to = from;
      let size = 0;
      while (to < lines.length && to - from + (segment.items?.length ?? 0) < SEGMENT_LINES) {
        const bytes = Buffer.byteLength(lines[to] as string) + 1;
        if (to > from && segment.size + size + bytes > SEGMENT_BYTES) break;
        size += bytes;
        to++;
      }
      const part = lines.slice(from, to);
      from = to;
      if (!this.#room(segment, part, size)) continue;
      yield [segment, part];
      if (from < lines.length) this.#rotate();
    }
  }

  /** Counts lines as those of a segment; if it may not have them, it drops them, and returns false. */
  #room(segment: Segment, part: string[], size: number): boolean {
    const traces = part.filter((line) => !line.startsWith(END)).length;
    let [limit, kept] = [this.#o.spoolBytes, this.#bytes];
    if (segment.path === undefined && this.#o.spool.agent !== undefined) {
      limit = Math.min(MEMORY_BYTES, limit);
      kept = [...this.#backlog, this.#current, segment].reduce((n, s) => (s === undefined || s.path !== undefined ? n : n + s.size), 0);
    }
    if (kept + size > limit) {
      this.#counts.waiting -= traces;
      this.#drop(traces, `${kept} bytes wait for ingest already, at most ${limit} may`);
      return false;
    }
    this.#bytes += size;
    segment.traces += traces;
    return true;
  }

  /** Keeps lines in memory that could not be added to a segment. What it had before stays in its file. */
  #moveToMemory(segment: Segment, part: string[], error: unknown): void {
    this.#unwritable(error);
    const size = part.reduce((n, line) => n + Buffer.byteLength(line) + 1, 0);
    this.#bytes -= size;
    segment.traces -= part.filter((line) => !line.startsWith(END)).length;
    if (this.#open === segment) this.#rotate();
    const memory = (this.#open = new Segment(undefined));
    if (this.#room(memory, part, size)) memory.appendSync(part, false);
  }

  #newSegment(): Segment {
    try {
      return this.#o.spool.segment();
    } catch (error) {
      this.#unwritable(error);
      return new Segment(undefined);
    }
  }

  #unwritable(error: unknown): void {
    this.#o.reporter.error("spool",
      `the spool ${this.#o.spool.agent} cannot be written (${textOf(error)}): up to ${MEMORY_BYTES >> 20} MiB of traces wait in memory`);
  }

  /** Hands a segment over when it is full or old enough. */
  #ripen(): void {
    const segment = this.#open;
    if (segment === undefined || this.#stopped) return;
    if ((segment.items?.length ?? 0) >= SEGMENT_LINES || segment.size >= SEGMENT_BYTES) return this.#rotate();
    this.#due ??= setTimeout(() => {
      this.#due = undefined;
      if (this.#writing === undefined) this.#rotate();
      else this.#ripen();
    }, SEGMENT_MILLISECONDS).unref();
  }

  #rotate(): void {
    const segment = this.#open;
    if (segment === undefined || segment.size === 0) return;
    clearTimeout(this.#due);
    this.#due = this.#open = undefined;
    segment.close();
    this.#backlog.push(segment);
    void this.#send();
  }

  async #tidy(): Promise<void> {
    if (this.#stopped) return;
    try {
      await this.#o.spool.touch();
      const adopted = await this.#o.spool.adopt((error) => this.#notTakenOver(error));
      this.#backlog.unshift(...adopted);
      this.#bytes += adopted.reduce((n, segment) => n + segment.size, 0);
      void this.#send();
    } catch (error) {
      this.#notTakenOver(error);
    }
  }

  #notTakenOver(error: unknown): void {
    this.#o.reporter.error("spool", `take over the files of earlier processes in ${this.#o.spool.agent}: ${textOf(error)}`);
  }

  // The task that sends.

  async #send(): Promise<void> {
    if (this.#sending) return;
    this.#sending = true;
    for (let pauses = 0; !this.#stopped && (this.#current ??= this.#backlog.shift()) !== undefined; ) {
      const segment = this.#current;
      this.#kicked = false;
      try {
        await this.#deliver(segment);
      } catch (error) {
        const wait = error instanceof Wait ? error : new Wait("internal", textOf(error));
        await this.#pause(wait, ++pauses);
        continue;
      }
      pauses = 0;
      if (!segment.adopted) this.#counts.waiting -= segment.traces;
      this.#bytes -= segment.size;
      this.#current = undefined;
      this.#changed();
    }
    this.#sending = false;
  }

  /** Pauses after an attempt that failed, and makes what waits survive a loss of power. */
  async #pause(wait: Wait, pauses: number): Promise<void> {
    const { reporter, spool } = this.#o;
    if (!this.#stopped) reporter.error(wait.kind, `${wait.message}; ${this.#counts.waiting} traces wait in ${spool.agent ?? "memory"}`);
    for (const segment of [this.#current, ...this.#backlog]) {
      // An error means that another process took the file over; or reading it will say what is wrong.
      if (segment !== undefined && performance.now() - segment.born > 1000) await segment.sync().catch(() => undefined);
    }
    this.#failures++;
    this.#changed();
    if (this.#kicked || this.#stopped) return;
    const grown = Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** Math.min(pauses - 1, 10)) * (0.5 + Math.random() / 2);
    const pause = wait.after === undefined ? grown : Math.min(LONGEST_REQUEST, Math.max(wait.after * 1000, FIRST_PAUSE));
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, pause).unref();
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  /** Sends a segment until each of its lines has an outcome; rejects with Wait if some have none. */
  async #deliver(segment: Segment): Promise<void> {
    let lines: string[];
    try {
      lines = await segment.load();
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return; // another process took this one for dead: it sends the file
      throw new Wait("spool", `read ${segment.path}: ${textOf(error)}`);
    }
    while (lines.length > 0) {
      const first = lines[0] as string;
      if (first.startsWith(END)) {
        await this.#end(first);
        lines = lines.slice(1);
      } else {
        const end = lines.findIndex((line) => line.startsWith(END));
        const count = Math.min(end < 0 ? lines.length : end, this.#mostLines);
        const [again, wait] = await this.#publish(lines.slice(0, count));
        lines = [...again, ...lines.slice(count)];
        segment.items = lines;
        if (wait !== undefined) throw wait;
      }
      segment.items = lines;
    }
    await segment.remove().catch((error: unknown) =>
      this.#o.reporter.error("spool", `remove a delivered file: ${textOf(error)}; a later process sends it again, which is harmless`));
  }

  async #request(method: string, path: string, mediaType: string, body: string): Promise<Answer> {
    try {
      return await this.#o.connection.send(method, path, mediaType, body);
    } catch (error) {
      throw new Wait("unreachable", `${this.#o.url} cannot be reached: ${reasonOf(error)}`);
    }
  }

  /** Sends one request. It returns the lines without an outcome, and why they have none. */
  async #publish(lines: string[]): Promise<[string[], Wait | undefined]> {
    const answer = await this.#request("POST", "/v1/traces", "application/x-ndjson", lines.map((line) => `${line}\n`).join(""));
    const outcomes = new Map<number, Outcome>();
    for (const text of answer.body.split("\n")) {
      try {
        const told = JSON.parse(text) as Outcome;
        if (typeof told.line === "number") outcomes.set(told.line, told);
      } catch {
        continue; // an empty line, or not ingest's own answer
      }
    }
    const { url, reporter } = this.#o;
    if (outcomes.size === 0) {
      const { word, message } = answer.problem();
      if (answer.code === 413 && lines.length > 1) {
        this.#mostLines = Math.max(1, lines.length >> 1);
        return [lines, undefined];
      }
      if (answer.code === 413) {
        this.#counts.refused++;
        reporter.error("refused", `ingest, or a proxy before it, takes no line of ${Buffer.byteLength(lines[0] as string)} bytes: ${message}`);
        return [[], undefined];
      }
      const kind = answer.code >= 500 || answer.code === 408 || answer.code === 429 ? "unreachable" : "request";
      return [lines, new Wait(kind, `${url}: ${message} (HTTP ${answer.code}${word === "" ? "" : ` ${word}`})`, answer.retryAfter)];
    }
    const again = lines.filter((_, i) => !this.#outcome(outcomes.get(i + 1) ?? {}));
    if (again.length === 0) return [again, undefined];
    const reason = [...outcomes.values()].filter((o) => o.status === "retry").flatMap((o) => faultsOf(o.faults))[0]?.message ?? "asks to wait";
    return [again, new Wait("unreachable", `${url}: ${reason}`, answer.retryAfter)];
  }

  /** Counts and reports the outcome of a line; reports whether it is final. */
  #outcome(told: Outcome): boolean {
    const { status, trace_id: traceId = "" } = told;
    if (status !== "accepted" && status !== "duplicate" && status !== "refused" && status !== "forbidden") return false;
    this.#counts[status]++;
    for (const warning of told.warnings ?? []) {
      this.#o.reporter.warning(String(warning.code), `${warning.pointer ?? ""} ${warning.message ?? ""}`.trim(), traceId);
    }
    if (status === "refused" || status === "forbidden") {
      this.#o.reporter.error(status, `ingest answered ${status}: the trace is not stored, and kept as a dead letter`, traceId, faultsOf(told.faults));
    }
    return true;
  }

  /** Requests the end of a session. One that ingest refuses does not hold up the traces. */
  async #end(line: string): Promise<void> {
    const { url, reporter } = this.#o;
    let body: string;
    try {
      body = JSON.stringify((JSON.parse(line) as { end_session: unknown }).end_session);
    } catch (error) {
      reporter.error("spool", `a damaged line in the spool: ${textOf(error)}`);
      return;
    }
    const answer = await this.#request("POST", "/v1/sessions/end", "application/json", body);
    if (answer.code < 300) return;
    const { word, message, faults } = answer.problem();
    if (answer.code >= 500 || answer.code === 401 || answer.code === 408 || answer.code === 429) {
      throw new Wait(answer.code === 401 ? "request" : "unreachable", `${url}: ${message} (HTTP ${answer.code} ${word})`, answer.retryAfter);
    }
    reporter.error("request", `end a session: ${message} (HTTP ${answer.code} ${word}); it ends when it is idle`, "", faults);
  }
}

/** Returns the reason of a connection that failed; with several addresses, of the first. */
function reasonOf(error: unknown): string {
  const one: unknown = error instanceof AggregateError ? error.errors[0] : error;
  return one instanceof Error ? one.message || one.name : String(one);
}
