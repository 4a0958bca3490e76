// Strict reading of JSON, hexadecimal digits and base64, and the forms of Python's json.dumps and repr, which the
// hashes of a log cover. Numbers keep the difference between 1 and 1.0, and objects the order of their members.
"use strict";

// Fault is what is wrong, and where: a text for each place.
class Fault extends Error {
  constructor(...texts) {
    super(texts.join("; "));
    this.texts = texts;
  }
}

// Float is a number that was written with a point or an exponent. A whole number is a bigint.
class Float {
  constructor(text) {
    this.text = text;
    this.value = Number(text);
  }
}

// Digits is a whole number that is slow to read, and that nothing here can be.
class Digits {
  constructor(text) { this.text = text; }
}

const DEPTH = 500;       // of objects and arrays in one another
const HARD_DEPTH = 950;  // where reading ends at once

// parseValue returns the value of JSON text: strings, booleans, null, bigint, Digits, Float, Array and Map. It throws
// a SyntaxError with the property deep set where only the depth is wrong.
function parseValue(text) {
  const number = /-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?/y;
  const plain = /[^"\\\u0000-\u001f]*/y;
  const space = /[ \t\n\r]*/y;
  const escapes = { '"': '"', "\\": "\\", "/": "/", b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" };
  let at = 0, deepest = 0;
  const wrong = (what) => { throw new SyntaxError(what + " at character " + at); };
  const match = (pattern) => {
    pattern.lastIndex = at;
    const found = pattern.exec(text);
    if (found) at = pattern.lastIndex;
    return found;
  };
  const string = () => { // behind its first quote
    let value = "";
    for (;;) {
      value += match(plain)[0];
      const c = text[at++];
      if (c === '"') return value;
      if (c !== "\\") { at--; wrong("a string without an end, or a control character"); }
      const escape = text[at++];
      if (escape === "u") {
        const digits = text.slice(at, at + 4);
        if (!/^[0-9a-fA-F]{4}$/.test(digits)) wrong("not an escape");
        value += String.fromCharCode(parseInt(digits, 16));
        at += 4;
      } else if (Object.hasOwn(escapes, escape ?? "")) {
        value += escapes[escape];
      } else {
        wrong("not an escape");
      }
    }
  };
  const value = (depth) => {
    match(space);
    const c = text[at];
    if (c === "{" || c === "[") {
      deepest = Math.max(deepest, depth + 1);
      if (depth + 1 > HARD_DEPTH) throw Object.assign(new SyntaxError("too deep"), { deep: true });
      at++;
      match(space);
      const end = c === "{" ? "}" : "]";
      const members = c === "{" ? new Map() : [];
      if (text[at] === end) { at++; return members; }
      for (;;) {
        if (c === "[") {
          members.push(value(depth + 1));
        } else {
          match(space);
          if (text[at++] !== '"') { at--; wrong("no name of a member"); }
          const name = string();
          match(space);
          if (text[at++] !== ":") { at--; wrong("no colon"); }
          const member = value(depth + 1);
          if (members.has(name)) wrong("duplicate member");
          members.set(name, member);
        }
        match(space);
        const next = text[at++];
        if (next === end) return members;
        if (next !== ",") { at--; wrong("no comma"); }
      }
    }
    if (c === '"') { at++; return string(); }
    for (const [word, meaning] of [["true", true], ["false", false], ["null", null]]) {
      if (text.startsWith(word, at)) { at += word.length; return meaning; }
    }
    const found = match(number);
    if (!found) wrong("no value");
    if (found[1] !== undefined || found[2] !== undefined) return new Float(found[0]);
    return found[0].length < 100 ? BigInt(found[0]) : new Digits(found[0]);
  };
  const result = value(0);
  match(space);
  if (at < text.length) wrong("something follows the value");
  if (deepest > DEPTH) throw Object.assign(new SyntaxError("too deep"), { deep: true });
  return result;
}

// parseObject returns a Map. Half of a surrogate pair is no character, so text with one is refused.
function parseObject(text, where) {
  let value;
  try {
    value = parseValue(text);
  } catch (e) {
    throw new Fault(where + ": " + (e.deep ? say(Says.TOO_DEEP, DEPTH) : Says.NOT_JSON));
  }
  if (/\\u[dD]/.test(text) && !wellFormed(value)) throw new Fault(where + ": " + Says.NOT_JSON);
  if (!(value instanceof Map)) throw new Fault(where + ": " + Says.NOT_OBJECT);
  return value;
}

// wellFormed reports whether all strings of a value are whole characters.
function wellFormed(value) {
  if (typeof value === "string") return value.isWellFormed();
  if (Array.isArray(value)) return value.every(wellFormed);
  if (value instanceof Map) return [...value].every(([name, member]) => name.isWellFormed() && wellFormed(member));
  return true;
}

// utf8 returns the text of bytes, which must be valid; a byte order mark stays a character.
function utf8(bytes, where) {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new Fault(where + ": " + Says.NOT_JSON);
  }
}

const encoder = new TextEncoder();
const bytesOf = (text) => encoder.encode(text);
const concat = (parts) => {
  const whole = new Uint8Array(parts.reduce((n, p) => n + p.length, 0));
  let at = 0;
  for (const p of parts) { whole.set(p, at); at += p.length; }
  return whole;
};
const equalBytes = (a, b) => a.length === b.length && a.every((byte, i) => byte === b[i]);

const hexOf = (bytes) => Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");
const sha256 = async (bytes) => new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
const sha256Hex = async (bytes) => hexOf(await sha256(bytes));

// hexBytes returns null for anything but so many bytes in digits of either case.
function hexBytes(text, size) {
  if (text.length !== 2 * size || !/^[0-9a-fA-F]*$/.test(text)) return null;
  return Uint8Array.from({ length: size }, (_, i) => parseInt(text.slice(2 * i, 2 * i + 2), 16));
}

// base64Bytes returns the bytes of the one canonical, padded form, or null. Without a size any number of them.
function base64Bytes(text, size) {
  if (text.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(text)) return null;
  const decoded = atob(text);
  if (btoa(decoded) !== text || size !== undefined && decoded.length !== size) return null;
  return Uint8Array.from(decoded, (c) => c.charCodeAt(0));
}

// latin1 is text with a character for each byte.
function latin1(bytes) {
  let text = "";
  for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return text;
}

// stripped returns text without these characters at both ends.
function stripped(text, characters) {
  let from = 0, to = text.length;
  while (from < to && characters.includes(text[from])) from++;
  while (to > from && characters.includes(text[to - 1])) to--;
  return text.slice(from, to);
}

// pyString writes a string as json.dumps does, in ASCII.
function pyString(text) {
  const short = { '"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t" };
  return '"' + text.replace(/["\\]|[^ -~]/g, (c) => short[c] ?? "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0")) + '"';
}

// pyFloat writes a finite number as Python's repr does.
function pyFloat(value) {
  if (Object.is(value, -0)) return "-0.0";
  if (value === 0) return "0.0";
  const [mantissa, exponentText] = Math.abs(value).toExponential().split("e");
  const digits = mantissa.replace(".", ""), exponent = Number(exponentText), sign = value < 0 ? "-" : "";
  if (exponent < -4 || exponent >= 16) {
    const size = String(Math.abs(exponent)).padStart(2, "0");
    return sign + digits[0] + (digits.length > 1 ? "." + digits.slice(1) : "") + "e" + (exponent < 0 ? "-" : "+") + size;
  }
  if (exponent < 0) return sign + "0." + "0".repeat(-exponent - 1) + digits;
  if (digits.length <= exponent + 1) return sign + digits + "0".repeat(exponent + 1 - digits.length) + ".0";
  return sign + digits.slice(0, exponent + 1) + "." + digits.slice(exponent + 1);
}

// pyDumps writes a value as json.dumps does with these separators, floats by the given function.
function pyDumps(value, comma = ", ", colon = ": ", float = (f) => pyFloat(f.value)) {
  if (typeof value === "string") return pyString(value);
  if (value instanceof Float) return float(value);
  if (value instanceof Digits) return pyString(value.text);
  if (Array.isArray(value)) return "[" + value.map((v) => pyDumps(v, comma, colon, float)).join(comma) + "]";
  if (value instanceof Map) {
    return "{" + [...value].map(([name, v]) => pyString(name) + colon + pyDumps(v, comma, colon, float)).join(comma) + "}";
  }
  return String(value); // null, true, false, whole numbers
}

// quoted and shown return a value of a bundle in short.
const quoted = (text) => pyString(Array.from(text).slice(0, 80).join(""));
function shown(value) {
  if (value instanceof Digits) return value.text.slice(0, 40);
  return typeof value === "string" ? quoted(value) : pyDumps(value ?? null).slice(0, 40);
}

// printable returns the text on one line, in ASCII.
const printable = (text) => text.replace(/[^ -~]/g, (c) => pyString(c).slice(1, -1));

// kindOf names the type of a value as Python does.
function kindOf(value) {
  if (typeof value === "bigint") return "int";
  if (typeof value === "string") return "str";
  if (typeof value === "boolean") return "bool";
  if (value instanceof Float) return "float";
  if (Array.isArray(value)) return "list";
  return value instanceof Map ? "dict" : "other";
}
