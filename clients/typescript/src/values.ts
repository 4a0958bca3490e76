/**
 * JSON values of whatever an agent has, and their canonical form (JCS, RFC 8785). A trace is
 * written in this form from the start, so what is signed is what is sent.
 */
import { createHash } from "node:crypto";

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
export type JsonObject = { [name: string]: Json };

export const MAX_LEVELS = 32; // of a value that only its publisher interprets
export const MAX_VALUE_BYTES = 128 << 10; // of such a value as JSON

/** A value is nested deeper than MAX_LEVELS, or contains itself. */
class TooDeep extends Error {}

/** Returns a value as JSON. What JSON cannot hold becomes a text, and costs nothing else. */
export function plain(value: unknown, levels: number = MAX_LEVELS): Json {
  switch (typeof value) {
    case "string":
      return wellFormed(value);
    case "boolean":
      return value;
    case "number":
      return Number.isFinite(value) ? value : String(value);
    case "bigint":
      return exact(value) ? Number(value) : String(value);
    case "undefined":
      return null;
    case "function":
    case "symbol":
      return wellFormed(String(value));
  }
  if (value === null || value === undefined) return null;
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? String(value) : value.toISOString();
  if (value instanceof ArrayBuffer) value = new Uint8Array(value);
  if (ArrayBuffer.isView(value)) return Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString("base64");
  if (value instanceof Error) return wellFormed(`${value.name}: ${value.message}`);
  if (levels === 0) throw new TooDeep(`nested deeper than ${MAX_LEVELS} levels`);
  if (typeof (value as { toJSON?: unknown }).toJSON === "function") return plain((value as { toJSON(): unknown }).toJSON(), levels - 1);
  if (value instanceof Set) return [...value].map((member) => plain(member, levels - 1));
  if (Array.isArray(value)) return value.map((member) => plain(member, levels - 1));
  if (value instanceof Number || value instanceof String || value instanceof Boolean) return plain(value.valueOf(), levels);
  const result: JsonObject = Object.create(null);
  for (const [name, member] of value instanceof Map ? value : Object.entries(value as object)) {
    if (member !== undefined) result[wellFormed(String(name))] = plain(member, levels - 1);
  }
  return result;
}

/** Returns a value as JSON, or what stands for it if that has more than most bytes or fails. Then it calls leftOut. */
export function bounded(value: unknown, leftOut: () => void, most = MAX_VALUE_BYTES): Json {
  try {
    const result = plain(value);
    if (typeof result === "string" || (typeof result === "object" && result !== null)) {
      const form = Buffer.from(canonical(result));
      if (form.length > most) {
        leftOut();
        return { left_out: { bytes: form.length, sha256: createHash("sha256").update(form).digest("hex") } };
      }
    }
    return result;
  } catch (error) {
    leftOut();
    if (error instanceof TooDeep) return { left_out: { levels: MAX_LEVELS } };
    return { left_out: { error: error instanceof Error ? error.name : "Error" } }; // of the value's own code, such as toJSON
  }
}

/** Is bounded for each member of an object, and for anything else. */
export function members(value: unknown, leftOut: () => void, most = MAX_VALUE_BYTES): Json {
  if (!isObject(value)) return bounded(value, leftOut, most);
  const result: JsonObject = Object.create(null);
  for (const [name, member] of Object.entries(value)) {
    if (member !== undefined) result[wellFormed(name)] = bounded(member, leftOut, most);
  }
  return result;
}

/** Reports whether a value is an object that is neither an array nor of a class. */
export function isObject(value: unknown): value is { [name: string]: unknown } {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/** Returns a text without half surrogate pairs, which UTF-8 cannot hold. */
function wellFormed(value: string): string {
  return value.replace(/[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/g, "\uFFFD");
}

/** Reports whether a reader of 64-bit floats reads the same digits. */
function exact(value: bigint): boolean {
  const float = Number(value);
  if (!Number.isFinite(float)) return false;
  const significant = (digits: string): string => digits.replace(/^-/, "").replace(/e.*$/, "").replace(".", "").replace(/0+$/, "");
  return significant(String(value)) === significant(String(float));
}

/** Returns the JCS form of a result of plain. */
export function canonical(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (typeof value === "object" && value !== null) {
    const names = Object.keys(value).sort(); // by UTF-16 code units
    return `{${names.map((name) => `${JSON.stringify(name)}:${canonical(value[name] as Json)}`).join(",")}}`;
  }
  return JSON.stringify(value);
}
