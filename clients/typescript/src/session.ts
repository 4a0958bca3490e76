/// <reference lib="esnext.disposable" preserve="true" />
/** A session of an agent: it numbers the traces, and wraps tools so that each call is a trace. */
import { types } from "node:util";

import type { Recorder } from "./recorder.js";
import { textOf } from "./report.js";
import { ARGUMENTS, type Decision } from "./trace.js";
import { members, type Json, type JsonObject } from "./values.js";

/** When a decision was made: its number in the session, and its time. */
export interface Place {
  number: number | undefined;
  timestamp: string;
}

/** Gives the places of a session in turn. Everybody who records in the session shares it. */
export class Counter {
  next: number | undefined;
  #last = 0;

  constructor(first: number | undefined) {
    this.next = first;
  }

  take(): Place {
    const number = this.next;
    if (number !== undefined) this.next = number + 1;
    this.#last = Math.max(this.#last, Date.now());
    return { number, timestamp: new Date(this.#last).toISOString() };
  }
}

/** What the recorder does for its sessions. None of these throws. */
export interface Owner {
  record(traceId: unknown, sessionId: string, place: Place, decision: Decision): void;
  end(sessionId: string): void;
  leftOut(): void;
  ignored(method: string, given: object, known: ReadonlySet<string>): void;
  invalid(reason: string): void;
}

const MEMBERS = ["type", "category", "target", "alternatives", "selected", "reasoning", "values", "confidence", "escalation"] as const;
const DECISION: ReadonlySet<string> = new Set(MEMBERS);

type Of<T> = T | ((parameters: { [name: string]: Json }) => T);

/** A decision of each call of a tool: values, or functions of the call's parameters. */
export type ToolOptions = { name?: string } & {
  [M in (typeof MEMBERS)[number]]?: Of<NonNullable<Decision[M]>>;
};

/** Symbol.asyncDispose, which Node 20 has and the standard library of ES2022 does not name. */
const asyncDispose: typeof Symbol.asyncDispose = Symbol.asyncDispose ?? Symbol.for("nodejs.asyncDispose");

/** Recorder.session makes it. */
export class Session {
  readonly sessionId: string;
  readonly #counter: Counter;
  readonly #owner: Owner;
  readonly #ends: boolean;

  /** @internal */
  constructor(owner: Owner, sessionId: string, counter: Counter, ends: boolean) {
    [this.#owner, this.sessionId, this.#counter, this.#ends] = [owner, sessionId, counter, ends];
  }

  /** The number of the next trace: what firstNumber of the agent's next session may be. */
  get nextNumber(): number | undefined {
    return this.#counter.next;
  }

  /** Records a decision and returns its trace_id at once. It never throws: onError gets what is wrong. */
  record(decision: Decision): string {
    this.#owner.ignored("record", decision, ARGUMENTS);
    return this.#record(this.#counter.take(), decision);
  }

  #record(place: Place, decision: Decision): string {
    const traceId: unknown = decision?.traceId ?? crypto.randomUUID();
    this.#owner.record(traceId, this.sessionId, place, decision);
    return textOf(traceId);
  }

  /** Wraps a function, synchronous or not: each call is a trace. */
  tool<A extends unknown[], R>(options: ToolOptions, run: (...args: A) => R): (...args: A) => R {
    const { name = run.name || "tool", ...given } = options;
    this.#owner.ignored("tool", given, DECISION);
    const decision = Object.fromEntries(Object.entries(given).filter(([member]) => DECISION.has(member)));
    const names = parameterNames(run);
    const session = this;
    return function (this: unknown, ...args: A): R {
      const place = session.#counter.take();
      const [parameters, fields] = session.#prepare(name, decision, names, args);
      const began = performance.now();
      const end = (result: { outputs: unknown } | { error: string }): void => {
        session.#record(place, {
          ...fields, action: name, parameters, execution: { tool_name: name, inputs: parameters, ...result },
          metadata: { duration_ms: Math.round((performance.now() - began) * 1000) / 1000 },
        });
      };
      let result: R;
      try {
        result = run.apply(this, args);
      } catch (error) {
        end({ error: textOf(error) });
        throw error;
      }
      if (!types.isPromise(result)) {
        end({ outputs: isThenable(result) ? null : result ?? null }); // a query of a database runs when it is awaited: the caller decides
        return result;
      }
      const recorded = result.then(
        (outputs: unknown) => {
          end({ outputs: outputs ?? null });
          return outputs;
        },
        (error: unknown) => {
          end({ error: textOf(error) });
          throw error;
        },
      );
      if (result.constructor === Promise) return recorded as R;
      recorded.catch(() => undefined); // the caller has the promise itself, which may have methods of its own
      return result;
    };
  }

  /** Returns a copy of the arguments, because the function may change them, and what depends on them. */
  #prepare(name: string, decision: object, names: string[], args: unknown[]): [JsonObject, Partial<Decision>] {
    try {
      const single = names.length === 0 && args.length === 1 && typeof args[0] === "object" && args[0] !== null && !Array.isArray(args[0]);
      const given: object = single ? { ...(args[0] as object) } : Object.fromEntries(args.map((value, i) => [names[i] ?? `arg${i}`, value]));
      const parameters = members(given, () => this.#owner.leftOut()) as JsonObject;
      const fields = Object.entries(decision).map(([member, value]) => [member, typeof value === "function" ? value(parameters) : value]);
      return [parameters, Object.fromEntries(fields) as Partial<Decision>];
    } catch (error) {
      this.#owner.invalid(`tool ${name}: ${textOf(error)}`);
      return [{}, {}];
    }
  }

  /** Requests the end of the session, after the traces recorded before. */
  end(): void {
    this.#owner.end(this.sessionId);
  }

  /** Ends the session at the end of an "await using" block. */
  async [asyncDispose](): Promise<void> {
    if (this.#ends) this.end();
  }
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === "object" && value !== null && typeof (value as PromiseLike<unknown>).then === "function";
}

/** Returns the names of a function's parameters as its source has them, where they are plain names. */
function parameterNames(run: (...args: never[]) => unknown): string[] {
  const source = Function.prototype.toString.call(run).replace(/\/\*[^]*?\*\/|\/\/[^\n]*/g, "");
  const list = /^(?:async\s+)?(?:function\b\s*\*?\s*[\w$]*\s*|\*?\s*[\w$]+\s*)?\(([^()]*)\)/.exec(source)?.[1] ?? /^(?:async\s+)?([\w$]+)\s*=>/.exec(source)?.[1] ?? "";
  const names = list.split(",").map((part) => part.trim().replace(/\s*=[^]*$/, ""));
  return names.every((name) => /^[A-Za-z_$][\w$]*$/.test(name)) ? names : [];
}

export type { Recorder };
