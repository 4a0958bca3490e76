/** Reports what goes wrong to the agent's onError and onWarning. */

const INTERVAL = 10_000; // milliseconds between two reports of a condition that lasts

export type ErrorKind = "invalid" | "refused" | "forbidden" | "unreachable" | "request" | "spool" | "dropped" | "internal";

/** Conditions are reported once per interval; everything else concerns one trace. */
const CONDITIONS: ReadonlySet<ErrorKind> = new Set<ErrorKind>(["unreachable", "request", "spool", "dropped", "internal"]);

export interface Fault {
  /** JSON pointer into the trace. */
  pointer: string;
  message: string;
}

/** Something that went wrong. docs/CLIENTS.md lists the kinds. */
export class PlumblineError extends Error {
  constructor(
    readonly kind: ErrorKind,
    readonly reason: string,
    readonly traceId: string = "",
    readonly faults: readonly Fault[] = [],
    public count: number = 1,
  ) {
    const where = traceId === "" ? "" : ` (trace ${traceId})`;
    super(`${kind}: ${reason}${where}${faults.map((f) => `; ${f.pointer === "" ? "" : `${f.pointer}: `}${f.message}`).join("")}`);
    this.name = "PlumblineError";
  }
}

export type OnError = (error: PlumblineError) => void;
export type OnWarning = (code: string, message: string, traceId: string) => void;

/** Calls onError and onWarning, at most as often as docs/CLIENTS.md says, and never throws. */
export class Reporter {
  readonly #onError: OnError;
  readonly #onWarning: OnWarning;
  readonly #limits: (kind: ErrorKind) => boolean;
  readonly #last = new Map<ErrorKind, number>();
  readonly #held = new Map<ErrorKind, PlumblineError>(); // not reported yet, with their number
  readonly #warned = new Set<string>();

  constructor(onError: OnError | undefined, onWarning: OnWarning | undefined) {
    this.#limits = onError === undefined ? () => true : (kind) => CONDITIONS.has(kind);
    this.#onError = onError ?? ((error) => console.error(`plumbline: ${error.message}${error.count > 1 ? ` (${error.count} times)` : ""}`));
    this.#onWarning = onWarning ?? ((code, message, traceId) =>
      console.warn(`plumbline: ${code}: ${message} (${traceId === "" ? "" : `trace ${traceId}; `}reported once)`));
  }

  error(kind: ErrorKind, reason: string, traceId = "", faults: readonly Fault[] = [], count = 1): void {
    const error = new PlumblineError(kind, reason, traceId, faults, count);
    if (this.#limits(kind)) {
      error.count += this.#held.get(kind)?.count ?? 0;
      if (performance.now() - (this.#last.get(kind) ?? -Infinity) < INTERVAL) {
        this.#held.set(kind, error);
        return;
      }
      this.#held.delete(kind);
      this.#last.set(kind, performance.now());
    }
    guarded(() => this.#onError(error));
  }

  /** Reports what was held back, if its interval is over or everything is asked for. */
  release(everything = false): void {
    for (const [kind, error] of [...this.#held]) {
      if (!everything && performance.now() - (this.#last.get(kind) ?? -Infinity) < INTERVAL) continue;
      this.#held.delete(kind);
      this.#last.set(kind, performance.now());
      guarded(() => this.#onError(error));
    }
  }

  warning(code: string, message: string, traceId: string): void {
    if (this.#warned.has(code)) return;
    this.#warned.add(code);
    guarded(() => this.#onWarning(code, message, traceId));
  }

  internal(where: string, error: unknown): void {
    this.error("internal", `${where}: ${textOf(error)}`);
  }
}

/** Calls a handler of the agent, whose errors must not stop the delivery. An asynchronous one must not end the process. */
function guarded(call: () => unknown): void {
  const failed = (error: unknown): void => console.error("plumbline: a handler of errors or warnings failed:", error);
  try {
    Promise.resolve(call()).catch(failed);
  } catch (error) {
    failed(error);
  }
}

export function textOf(error: unknown): string {
  try {
    return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  } catch {
    return "(its text cannot be read)";
  }
}
