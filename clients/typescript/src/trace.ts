/** Builds AP-Traces (AAP section 5), and finds what ingest would refuse, in ingest's words. */
import type { Fault } from "./report.js";
import { MAX_VALUE_BYTES, bounded, isObject, members, plain, type Json, type JsonObject } from "./values.js";

export const MAX_TRACE_BYTES = 768 << 10;
export const MAX_ID_BYTES = 512;
const MAX_ALTERNATIVES = 256;
const MAX_ERROR_BYTES = 4 << 10; // of execution.error

const TYPES = ["recommend", "execute", "escalate", "deny"] as const;
const CATEGORIES = ["bounded", "escalation_trigger", "forbidden"] as const;
const STATUSES = ["pending", "approved", "denied", "timeout"] as const;

export type Type = (typeof TYPES)[number];
export type Category = (typeof CATEGORIES)[number];

export interface Alternative {
  option_id: string;
  description: string;
  score?: number;
  scoring_factors?: Record<string, unknown>;
  flags?: string[];
}

export interface Escalation {
  evaluated?: boolean;
  triggers_checked?: { trigger?: string; matched?: boolean; value_observed?: unknown }[];
  required?: boolean;
  reason?: string;
  escalation_id?: string;
  escalation_status?: (typeof STATUSES)[number];
  principal_response?: { decision?: string; timestamp?: string; conditions?: string[] };
}

export interface Execution {
  tool_name?: string;
  inputs?: unknown;
  outputs?: unknown;
  cost_cents?: number;
  error?: string;
}

/** What Session.record takes. docs/CLIENTS.md says which member of the trace each one becomes. */
export interface Decision {
  action: string;
  type?: Type;
  category?: Category;
  target?: { type?: string; identifier?: string };
  parameters?: Record<string, unknown>;
  alternatives?: readonly (Alternative | string)[];
  selected?: string;
  reasoning?: string;
  values?: readonly string[];
  confidence?: number;
  escalation?: Escalation;
  execution?: Execution;
  turn?: number;
  prior?: readonly string[];
  environment?: Record<string, unknown>;
  metadata?: Record<string, unknown>;
  timestamp?: string | Date;
  traceId?: string;
}

/** The members of Decision. */
export const ARGUMENTS: ReadonlySet<string> = new Set<keyof Decision>([
  "action", "type", "category", "target", "parameters", "alternatives", "selected", "reasoning", "values", "confidence", "escalation", "execution",
  "turn", "prior", "environment", "metadata", "timestamp", "traceId",
]);

/** Returns the trace of a decision. head has the ids and the timestamp, a value has at most most bytes. */
export function build(
  head: JsonObject, sessionId: string | undefined, sequenceNumber: number | undefined, d: Decision, leftOut: () => void, most = MAX_VALUE_BYTES,
): JsonObject {
  const options = alternativesOf(d);
  const only = Array.isArray(options) && options.length === 1 ? options[0] : undefined;
  const selected = d.selected ?? (isRecord(only) ? only["option_id"] : undefined);
  const notes = d.metadata == null ? {} : members(d.metadata, leftOut, most);
  const metadata = isRecord(notes)
    ? { ...notes, ...given({ sequence_number: sequenceNumber, execution: executionOf(d.execution, leftOut, most) }) } : notes;
  const context = given({
    session_id: sessionId, conversation_turn: d.turn, prior_trace_ids: d.prior,
    environment: d.environment == null ? undefined : members(d.environment, leftOut, most),
    metadata: isRecord(metadata) && Object.keys(metadata).length === 0 ? undefined : metadata,
  });
  const escalation = d.escalation == null ? undefined : bounded(d.escalation, leftOut);
  return given({
    ...head,
    action: given({
      type: d.type ?? "execute", name: d.action, category: d.category ?? "bounded", target: d.target,
      parameters: d.parameters == null ? undefined : members(d.parameters, leftOut, most),
    }),
    decision: given({
      alternatives_considered: options, selected, selection_reasoning: d.reasoning ?? "",
      values_applied: d.values ?? [], confidence: d.confidence,
    }),
    escalation: isRecord(escalation) ? { evaluated: true, ...escalation } : escalation,
    context: Object.keys(context).length === 0 ? undefined : context,
  });
}

/** Returns the members that are there, as JSON. */
function given(of: { [name: string]: unknown }): JsonObject {
  const result: JsonObject = Object.create(null);
  for (const [name, value] of Object.entries(of)) {
    if (value !== undefined && value !== null) result[name] = plain(value, 48);
  }
  return result;
}

/** Returns the alternatives; a text is an alternative's id and description. */
function alternativesOf(d: Decision): Json {
  const single = typeof d.action === "string" && d.action !== "" ? [d.action] : undefined;
  const value: unknown = d.alternatives ?? single;
  if (!Array.isArray(value)) return plain(value);
  return value.map((a: unknown) => plain(typeof a === "string" ? { option_id: a, description: a } : a));
}

function executionOf(value: unknown, leftOut: () => void, most: number): Json {
  if (!isObject(value)) return plain(value);
  const result: JsonObject = {};
  for (const [name, member] of Object.entries(value)) {
    if (member === undefined || name === "error") continue;
    result[name] = name === "inputs" ? members(member, leftOut, most) : bounded(member, leftOut, most);
  }
  if (value["error"] != null) result["error"] = clip(bounded(value["error"], leftOut, Infinity), MAX_ERROR_BYTES);
  return result;
}

/** Returns a text of at most most bytes: ingest reads no other error than a text. */
function clip(value: Json, most: number): Json {
  if (typeof value !== "string" || Buffer.byteLength(value) <= most) return value;
  const data = Buffer.from(value);
  let end = most - 3;
  while (((data[end] ?? 0) & 0xc0) === 0x80) end--; // not within a character
  return `${data.subarray(0, end).toString()}…`;
}

function isRecord(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Returns what ingest would refuse about a result of build. */
export function check(trace: JsonObject): Fault[] {
  const c = new Checker();
  for (const name of ["trace_id", "agent_id", "card_id"]) c.required(trace, "", name, c.identifier);
  c.required(trace, "", "timestamp", c.time);
  c.action(trace["action"] as JsonObject);
  c.decision(trace["decision"] as JsonObject);
  c.optional(trace, "", "escalation", c.escalation);
  c.optional(trace, "", "context", c.context);
  return c.faults;
}

type Check = (value: Json, at: string) => void;

/** Collects faults. Each check takes a value and its JSON pointer. */
class Checker {
  readonly faults: Fault[] = [];

  fault(pointer: string, message: string): void {
    this.faults.push({ pointer, message });
  }

  wrong(value: Json, at: string, want: string): false {
    this.fault(at, `want ${want}, found ${kindOf(value)}`);
    return false;
  }

  required(of: JsonObject, at: string, name: string, check: Check): void {
    const value = of[name];
    if (value === undefined) this.fault(`${at}/${name}`, "is missing (required)");
    else check(value, `${at}/${name}`);
  }

  optional(of: JsonObject, at: string, name: string, check: Check): void {
    const value = of[name];
    if (value !== undefined && value !== null) check(value, `${at}/${name}`);
  }

  /** Is optional, except that null is not absent. */
  present(of: JsonObject, at: string, name: string, check: Check): void {
    const value = of[name];
    if (value !== undefined) check(value, `${at}/${name}`);
  }

  readonly text = (value: Json, at: string): value is string => typeof value === "string" || this.wrong(value, at, "a string");

  readonly texts = (value: Json, at: string): void => {
    if (Array.isArray(value)) value.forEach((member, i) => this.text(member, `${at}/${i}`));
    else this.wrong(value, at, "an array of strings");
  };

  readonly object = (value: Json, at: string): value is JsonObject => isRecord(value) || this.wrong(value, at, "an object");

  readonly boolean = (value: Json, at: string): void => {
    if (typeof value !== "boolean") this.wrong(value, at, "a boolean");
  };

  readonly identifier = (value: Json, at: string): void => {
    if (!this.text(value, at)) return;
    const size = Buffer.byteLength(value);
    if (size === 0) this.fault(at, "must not be empty");
    else if (size > MAX_ID_BYTES) this.fault(at, `${size} bytes, at most ${MAX_ID_BYTES} are allowed`);
  };

  oneOf(allowed: readonly string[]): Check {
    return (value, at) => {
      const text = this.text(value, at) ? value : "";
      if (!allowed.includes(text)) this.fault(at, `${quoted(text)} is none of ${allowed.join(", ")}`);
    };
  }

  readonly fraction = (value: Json, at: string): void => {
    if (typeof value !== "number") this.wrong(value, at, "a number");
    else if (value < 0 || value > 1) this.fault(at, `${value} is outside 0..1`);
  };

  readonly natural = (value: Json, at: string): void => {
    if (typeof value !== "number") this.wrong(value, at, "an integer");
    else if (!Number.isInteger(value) || value < 0 || value >= 2 ** 63) this.fault(at, "want an integer of at least 0");
  };

  readonly time = (value: Json, at: string): void => {
    if (!this.text(value, at)) return;
    const moment = parseTime(value);
    if (moment === undefined) {
      this.fault(at, `${quoted(value)} is not an RFC 3339 time with a zone, such as 2026-01-31T12:30:00Z`);
    } else if (moment.getUTCFullYear() < 1970 || moment.getUTCFullYear() > 2105) {
      this.fault(at, `${moment.toISOString().replace(".000Z", "Z")} is outside 1970..2105`);
    }
  };

  action(value: JsonObject): void {
    const at = "/action";
    this.required(value, at, "type", this.oneOf(TYPES));
    this.required(value, at, "name", this.identifier);
    this.required(value, at, "category", this.oneOf(CATEGORIES));
    this.optional(value, at, "target", (target, where) => {
      if (!this.object(target, where)) return;
      this.present(target, where, "type", this.text);
      this.present(target, where, "identifier", this.text);
    });
    this.optional(value, at, "parameters", this.object);
  }

  decision(value: JsonObject): void {
    const at = "/decision";
    this.required(value, at, "alternatives_considered", this.alternatives);
    this.required(value, at, "selected", this.identifier);
    this.required(value, at, "selection_reasoning", this.text);
    this.required(value, at, "values_applied", this.texts);
    this.optional(value, at, "confidence", this.fraction);
    const { selected, alternatives_considered: options } = value;
    if (typeof selected !== "string" || selected === "" || !Array.isArray(options) || options.length === 0) return;
    if (!options.slice(0, MAX_ALTERNATIVES).some((option) => isRecord(option) && option["option_id"] === selected)) {
      this.fault("/decision/selected", `no alternative has the option_id ${quoted(selected)}`);
    }
  }

  readonly alternatives = (value: Json, at: string): void => {
    if (!Array.isArray(value)) {
      this.wrong(value, at, "an array of alternatives");
      return;
    }
    if (value.length === 0) this.fault(at, "at least one alternative is required");
    const seen = new Set<string>();
    value.forEach((option, i) => {
      if (i >= MAX_ALTERNATIVES) this.fault(`${at}/${i}`, `more than ${MAX_ALTERNATIVES} alternatives`);
      else this.alternative(option, `${at}/${i}`, seen);
    });
  };

  alternative(option: Json, at: string, seen: Set<string>): void {
    if (!this.object(option, at)) return;
    this.required(option, at, "option_id", this.identifier);
    const id = option["option_id"];
    if (typeof id === "string" && id !== "") {
      if (seen.has(id)) this.fault(`${at}/option_id`, `${quoted(id)} is the option_id of an earlier alternative too`);
      seen.add(id);
    }
    this.required(option, at, "description", this.text);
    this.optional(option, at, "score", this.fraction);
    this.optional(option, at, "scoring_factors", this.object);
    this.optional(option, at, "flags", this.texts);
  }

  readonly escalation = (value: Json, at: string): void => {
    if (!this.object(value, at)) return;
    this.present(value, at, "evaluated", this.boolean);
    this.optional(value, at, "triggers_checked", this.triggers);
    this.present(value, at, "required", this.boolean);
    this.optional(value, at, "reason", this.text);
    this.optional(value, at, "escalation_id", this.text);
    this.optional(value, at, "escalation_status", this.oneOf(STATUSES));
    this.optional(value, at, "principal_response", (response, where) => {
      if (!this.object(response, where)) return;
      this.optional(response, where, "decision", this.text);
      this.optional(response, where, "timestamp", this.time);
      this.optional(response, where, "conditions", this.texts);
    });
  };

  readonly triggers = (value: Json, at: string): void => {
    if (!Array.isArray(value)) {
      this.wrong(value, at, "an array of triggers");
      return;
    }
    value.forEach((trigger, i) => {
      if (!this.object(trigger, `${at}/${i}`)) return;
      this.present(trigger, `${at}/${i}`, "trigger", this.text);
      this.present(trigger, `${at}/${i}`, "matched", this.boolean);
    });
  };

  readonly context = (value: Json, at: string): void => {
    if (!this.object(value, at)) return;
    this.optional(value, at, "session_id", (id, where) => {
      this.identifier(id, where);
      if (typeof id === "string" && id.startsWith("~utc-")) this.fault(where, 'session ids beginning with "~utc-" are reserved');
    });
    this.optional(value, at, "conversation_turn", this.natural);
    this.optional(value, at, "prior_trace_ids", this.texts);
    this.optional(value, at, "environment", this.object);
    this.optional(value, at, "metadata", this.object);
  };
}

/** Returns the name of a kind of JSON value, as faults write it. */
function kindOf(value: Json): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  return { boolean: "a boolean", number: "a number", string: "a string" }[typeof value as string] ?? "an object";
}

/** Returns at most 64 bytes of a text, in quotation marks. */
function quoted(value: string): string {
  let bytes = Buffer.from(value);
  if (bytes.length > 64) {
    let end = 64;
    while (((bytes[end] ?? 0) & 0xc0) === 0x80) end--; // whole characters
    value = bytes.subarray(0, end).toString() + "…";
  }
  return JSON.stringify(value);
}

const TIME = /^(\d{4}-\d\d-\d\d)[Tt]((?:[01]\d|2[0-3]):[0-5]\d):([0-5]\d|60)(?:\.\d+)?([Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/;

/** Returns an RFC 3339 time in whole seconds, or undefined. Second 60 is the last of a day in UTC. */
function parseTime(value: string): Date | undefined {
  const [, day = "", minute = "", second = "", zone = ""] = TIME.exec(value) ?? [];
  const date = new Date(`${day}T00:00:00Z`);
  if (Number.isNaN(date.getTime()) || date.toISOString().slice(0, 10) !== day) return undefined;
  const leap = second === "60";
  const moment = new Date(`${day}T${minute}:${leap ? "59" : second}${zone.toUpperCase()}`);
  if (!leap) return moment;
  return moment.toISOString().slice(11, 16) === "23:59" ? new Date(moment.getTime() + 1000) : undefined;
}
