/** Signing keys, and the signatures of traces and cards (AAP sections 9.2 and 9.3). */
import { createPrivateKey, createPublicKey, randomBytes, sign, type KeyObject } from "node:crypto";
import { closeSync, fstatSync, fsyncSync, openSync, readFileSync, writeSync } from "node:fs";

import { canonical, type JsonObject } from "./values.js";

const PKCS8 = Buffer.from("302e020100300506032b657004220420", "hex"); // precedes the seed in DER

/** An Ed25519 key with the id under which the agent's card lists it. */
export class Key {
  readonly keyId: string;
  readonly #private: KeyObject;

  constructor(seed: Uint8Array, keyId: string) {
    if (seed.length !== 32) throw new RangeError(`a private key has 32 bytes, not ${seed.length}`);
    const size = Buffer.byteLength(keyId);
    if (size < 1 || size > 512) throw new RangeError(`a key id has 1 to 512 bytes, not ${size}`);
    this.keyId = keyId;
    this.#private = createPrivateKey({ key: Buffer.concat([PKCS8, seed]), format: "der", type: "pkcs8" });
  }

  /** Reads a key file: the 32 raw bytes, mode 0600. */
  static load(path: string, keyId: string): Key {
    const file = openSync(path, "r");
    try {
      const mode = fstatSync(file).mode & 0o7777;
      if (process.platform !== "win32" && mode !== 0o600) {
        throw new Error(`load key ${path}: mode is 0${mode.toString(8)}, want 0600; run: chmod 600 '${path}'`);
      }
      const seed = readFileSync(file);
      if (seed.length !== 32 || seed.every((byte) => byte === 0)) {
        throw new Error(`load key ${path}: not exactly 32 raw bytes (no PEM, no hexadecimal digits, no line feed)`);
      }
      return new Key(seed, keyId);
    } finally {
      closeSync(file);
    }
  }

  /** Makes a new key and writes it to path, which must not exist. */
  static create(path: string, keyId: string): Key {
    const seed = randomBytes(32);
    const key = new Key(seed, keyId);
    const file = openSync(path, "wx", 0o600);
    try {
      writeSync(file, seed);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    return key;
  }

  /** Returns the entry for extensions.plumbline.keys of the agent's card. */
  public(): { key_id: string; algorithm: "Ed25519"; public_key: string } {
    const der = createPublicKey(this.#private).export({ format: "der", type: "spki" });
    return { key_id: this.keyId, algorithm: "Ed25519", public_key: der.subarray(-32).toString("base64") };
  }

  /** Returns the signature block over the canonical form of an object. */
  signature(payload: Uint8Array): JsonObject {
    return { algorithm: "Ed25519", key_id: this.keyId, value: sign(null, payload, this.#private).toString("base64") };
  }

  /** Returns a canonical object, which has no signature, with its signature as last member. */
  attach(line: string): string {
    return `${line.slice(0, -1)},"signature":${canonical(this.signature(Buffer.from(line)))}}`;
  }
}
