// Ed25519 (RFC 8032): signatures are checked by the browser. What it does not do is refuse keys of small order, for which anyone
// can make a signature; that needs the curve's points, in extended coordinates (x, y, z, x*y/z).
"use strict";

const P = 2n ** 255n - 19n;
const modP = (n) => { const r = n % P; return r < 0n ? r + P : r; };

function power(base, exponent) {
  let result = 1n;
  for (base = modP(base); exponent > 0n; exponent >>= 1n) {
    if (exponent & 1n) result = modP(result * base);
    base = modP(base * base);
  }
  return result;
}

const D = modP(-121665n * power(121666n, P - 2n));
const SQUARE_ROOT_OF_MINUS_1 = power(2n, (P - 1n) / 4n);

function pointDoubled([x, y, z]) {
  const a = modP(x * x), b = modP(y * y), c = modP(2n * z * z), h = a + b, e = modP(h - (x + y) * (x + y)), g = a - b, f = c + g;
  return [modP(e * f), modP(g * h), modP(f * g)];
}

// pointFrom returns the curve point that 32 bytes name, or null.
function pointFrom(bytes) {
  let number = 0n;
  for (let i = 31; i >= 0; i--) number = (number << 8n) | BigInt(bytes[i]);
  const y = (number & ((1n << 255n) - 1n)) % P;
  const square = modP((y * y - 1n) * power(D * y * y + 1n, P - 2n));
  let x = power(square, (P + 3n) / 8n);
  if (modP(x * x - square) !== 0n) x = modP(x * SQUARE_ROOT_OF_MINUS_1);
  if (modP(x * x - square) !== 0n) return null;
  return [x, y, 1n]; // the sign of x makes no difference to the order
}

// smallOrder reports whether eight times the point is the neutral element.
function smallOrder(key) {
  let point = pointFrom(key);
  if (point === null) return false;
  for (let i = 0; i < 3; i++) point = pointDoubled(point);
  return modP(point[0]) === 0n && modP(point[1] - point[2]) === 0n;
}

// signatureHolds reports whether a signature over a message is by a key. It throws where the browser has no Ed25519.
async function signatureHolds(key, signature, message) {
  let imported;
  try {
    imported = await crypto.subtle.importKey("raw", key, "Ed25519", false, ["verify"]);
  } catch (e) {
    if (e.name === "NotSupportedError") throw new Error("this browser has no Ed25519");
    return false; // not a point of the curve
  }
  return crypto.subtle.verify("Ed25519", imported, signature, message);
}
