// SHA-256 of bytes that come one after another. The browser's own SHA-256 takes all of them at once, and a seal in the middle of a
// log would have it hash everything before it again.
"use strict";

const ROUND_CONSTANTS = new Int32Array([
  0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
  0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
  0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
  0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
  0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
  0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2]);

// RunningHash is the SHA-256 (FIPS 180-4) of what it has been given so far.
class RunningHash {
  state = new Int32Array([0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19]);
  block = new Uint8Array(64);
  bytes = 0; // given

  add(bytes) {
    for (const byte of bytes) {
      this.block[this.bytes++ % 64] = byte;
      if (this.bytes % 64 === 0) mix(this.state, this.block);
    }
  }

  // hex returns the digest. More may be added after it.
  hex() {
    const end = new RunningHash();
    end.state.set(this.state);
    end.block.set(this.block);
    end.bytes = this.bytes;
    end.add([0x80]);
    while (end.bytes % 64 !== 56) end.add([0]);
    const length = new DataView(new ArrayBuffer(8));
    length.setBigUint64(0, 8n * BigInt(this.bytes));
    end.add(new Uint8Array(length.buffer));
    return Array.from(end.state, (word) => (word >>> 0).toString(16).padStart(8, "0")).join("");
  }
}

const SCHEDULE = new Int32Array(64);
const turned = (word, n) => (word >>> n) | (word << (32 - n));

// mix mixes a block of 64 bytes into the state.
function mix(state, block) {
  const w = SCHEDULE;
  for (let i = 0; i < 16; i++) w[i] = (block[4 * i] << 24) | (block[4 * i + 1] << 16) | (block[4 * i + 2] << 8) | block[4 * i + 3];
  for (let i = 16; i < 64; i++) {
    const x = w[i - 15], y = w[i - 2];
    w[i] = w[i - 16] + (turned(x, 7) ^ turned(x, 18) ^ (x >>> 3)) + w[i - 7] + (turned(y, 17) ^ turned(y, 19) ^ (y >>> 10));
  }
  let [a, b, c, d, e, f, g, h] = state;
  for (let i = 0; i < 64; i++) {
    const one = h + (turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)) + ((e & f) ^ (~e & g)) + ROUND_CONSTANTS[i] + w[i];
    const two = (turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    [h, g, f, e, d, c, b, a] = [g, f, e, (d + one) | 0, c, b, a, (one + two) | 0];
  }
  [a, b, c, d, e, f, g, h].forEach((word, i) => { state[i] += word; });
}
