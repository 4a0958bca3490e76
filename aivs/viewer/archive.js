// The outer layers of a bundle: one gzip member around a tar archive of plain files below session_proof/.
"use strict";

const ROOT = "session_proof/";
const LARGEST = 1 << 30;   // bytes of an unpacked archive; a browser holds all of it
const RATIO_FLOOR = 64 << 20;
const RATIO = 250;         // uncompressed to compressed, beyond RATIO_FLOOR
const MOST_FILES = 10000;
const LONGEST_NAME = 1024; // bytes
const ARCHIVE = "archive: ";

// Archive holds the files of a bundle in memory.
class Archive {
  constructor() {
    this.files = new Map();  // name below session_proof/ -> bytes, in the archive's order
    this.canonical = false;  // the archive is byte for byte what Plumbline writes
    this.header = "";        // the first ten bytes, in hexadecimal digits
    this.packed = this.unpacked = 0;
  }
}

// unpack reads a .tar.gz. It throws a Fault where the archive is none, or holds what could deceive.
async function unpack(bytes) {
  const archive = new Archive();
  archive.header = hexOf(bytes.subarray(0, 10));
  archive.packed = bytes.length;
  const tar = await gunzip(bytes);
  archive.unpacked = tar.length;
  untar(tar, archive);
  return archive;
}

// gunzip checks header, length and CRC of the one member. Whatever follows it is refused.
async function gunzip(bytes) {
  const flags = bytes[3];
  if (bytes.length < 18 || bytes[0] !== 0x1f || bytes[1] !== 0x8b || bytes[2] !== 8 || flags > 31) throw new Fault(ARCHIVE + "not a gzip file");
  let at = 10;
  if (flags & 4) at += 2 + bytes[at] + 256 * bytes[at + 1];
  for (const bit of [8, 16]) { // a name, a comment
    if (flags & bit) at = bytes.indexOf(0, at) + 1;
  }
  if (flags & 2) at += 2;
  if (at < 10 || at > bytes.length - 8) throw new Fault(ARCHIVE + "not a gzip file");
  const content = await inflate(bytes.subarray(at, bytes.length - 8), bytes.length);
  const end = new DataView(bytes.buffer, bytes.byteOffset + bytes.length - 8);
  if (end.getUint32(0, true) !== crc32(content) || end.getUint32(4, true) !== content.length) {
    throw new Fault(ARCHIVE + "its content is damaged, or data follows its end");
  }
  return content;
}

async function inflate(compressed, packed) {
  const parts = [];
  let size = 0;
  try {
    const reader = new Blob([compressed]).stream().pipeThrough(new DecompressionStream("deflate-raw")).getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return concat(parts);
      parts.push(value);
      size += value.length;
      if (size > LARGEST) throw new Fault(ARCHIVE + `more than ${LARGEST} bytes uncompressed: use plumbline bundle verify`);
      if (size > RATIO_FLOOR && size / packed > RATIO) throw new Fault(ARCHIVE + `uncompresses to more than ${RATIO} times its size: use plumbline bundle verify`);
    }
  } catch (e) {
    throw e instanceof Fault ? e : new Fault(ARCHIVE + "its content is damaged, or data follows its end");
  }
}

const CRC_TABLE = Uint32Array.from({ length: 256 }, (_, n) => {
  for (let k = 0; k < 8; k++) n = n & 1 ? 0xedb88320 ^ (n >>> 1) : n >>> 1;
  return n;
});

function crc32(bytes) {
  let crc = 0xffffffff;
  for (let i = 0; i < bytes.length; i++) crc = CRC_TABLE[(crc ^ bytes[i]) & 0xff] ^ (crc >>> 8);
  return (crc ^ 0xffffffff) >>> 0;
}

const BLOCK = 512;
const padded = (size) => Math.ceil(size / BLOCK) * BLOCK;

// untar takes the files. Names that differ only in case, links, devices and paths that lead elsewhere are refused.
function untar(tar, archive) {
  const lower = new Set();
  let at = 0, entries = 0, longName = null, pax = {};
  archive.canonical = true;
  for (;;) {
    if (at === tar.length) break; // without the empty blocks that end an archive
    const block = tar.subarray(at, at + BLOCK);
    if (block.length < BLOCK) throw new Fault(ARCHIVE + "cut within a header");
    if (block.every((b) => b === 0)) break;
    const header = readHeader(block);
    at += BLOCK;
    const size = pax.size ?? header.size;
    if (size > tar.length - at) throw new Fault(ARCHIVE + "cut within a file");
    const data = tar.subarray(at, at + size);
    at += padded(size);
    if (["x", "L", "K"].includes(header.type)) { // about the next entry; K is the target of a link, which no file has
      archive.canonical = false;
      if (header.type === "x") pax = paxRecords(data);
      if (header.type === "L") longName = nameOf(data);
      continue;
    }
    const name = longName || pax.path || header.name;
    const type = header.type || (name.endsWith("/") ? "5" : "0"); // an old archive marks a directory by its name alone
    longName = null;
    pax = {};
    if (++entries > MOST_FILES) throw new Fault(ARCHIVE + say(Says.TOO_MANY, MOST_FILES));
    const below = safeName(name, type, size);
    if (below === "") { archive.canonical = false; continue; }
    if (lower.has(folded(below))) throw new Fault(ARCHIVE + Says.NAMES_TWICE);
    lower.add(folded(below));
    archive.files.set(below, data);
    const padding = tar.subarray(at - padded(size) + size, at);
    archive.canonical &&= /^[ -~]*$/.test(below) && equalBytes(block, ourHeader(ROOT + below, size)) && padding.every((b) => b === 0);
  }
  if ([...lower].some((name) => withinFile(name, lower))) throw new Fault(ARCHIVE + Says.FOLDER_TOO);
  if (!tar.subarray(at).every((b) => b === 0)) throw new Fault(ARCHIVE + "after its last entry: data that is not padding");
  archive.canonical &&= tar.length - at === 2 * BLOCK;
}

// nameOf returns the name in a header, which ends at a zero byte. A byte that is no UTF-8 becomes half of a surrogate pair, so that no
// two names become the same.
function nameOf(bytes) {
  const end = bytes.indexOf(0), name = end < 0 ? bytes : bytes.subarray(0, end);
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(name);
  } catch {
    return latin1(name).replace(/[^\0-\x7f]/g, (c) => String.fromCharCode(0xdc00 + c.charCodeAt(0)));
  }
}

// folded returns a name with the letters A to Z in lower case. What file systems and languages make of others differs.
const folded = (name) => name.replace(/[A-Z]/g, (c) => c.toLowerCase());

// withinFile reports whether one of the folders of a name is a file.
function withinFile(name, files) {
  for (let at = name.indexOf("/"); at >= 0; at = name.indexOf("/", at + 1)) {
    if (files.has(name.slice(0, at))) return true;
  }
  return false;
}

// lengthOf returns how many bytes a name has.
const lengthOf = (name) => bytesOf(name).length - 2 * (name.match(/[\udc80-\udcff]/gu) ?? []).length;

function readHeader(block) {
  const text = (from, to) => latin1(block.subarray(from, to)).split("\0")[0];
  const octal = (from, to) => {
    const digits = stripped(text(from, to), " ");
    if (!/^[0-7]*$/.test(digits)) throw new Fault(ARCHIVE + "a header with a number that is none");
    return parseInt(digits || "0", 8);
  };
  let sum = 0;
  for (let i = 0; i < BLOCK; i++) sum += i >= 148 && i < 156 ? 32 : block[i];
  if (octal(148, 156) !== sum) throw new Fault(ARCHIVE + "a header whose checksum is wrong");
  const name = nameOf(block.subarray(0, 100)), magic = latin1(block.subarray(257, 263)), prefix = magic === "ustar\0" ? nameOf(block.subarray(345, 500)) : "";
  return { name: prefix ? prefix + "/" + name : name, size: octal(124, 136), type: block[156] ? String.fromCharCode(block[156]) : "" };
}

// paxRecords reads the members of an extended header that are known here: path and size.
function paxRecords(data) {
  const found = {};
  let at = 0;
  while (at < data.length) {
    const space = data.indexOf(32, at), length = space < 0 ? NaN : Number(latin1(data.subarray(at, space)));
    if (!(length > space - at) || at + length > data.length) throw new Fault(ARCHIVE + "an extended header that is damaged");
    const record = data.subarray(space + 1, at + length - 1), equals = record.indexOf(61);
    const key = latin1(record.subarray(0, Math.max(equals, 0))), value = nameOf(record.subarray(equals + 1));
    if (key.startsWith("GNU.sparse.")) throw new Fault(ARCHIVE + Says.NOT_PLAIN);
    if (key === "path") found.path = value;
    if (key === "size" && value !== "") {
      if (!/^[0-9]{1,15}$/.test(value)) throw new Fault(ARCHIVE + "an extended header that is damaged");
      found.size = Number(value);
    }
    at += length;
  }
  return found;
}

// safeName returns a name below session_proof/, or "" for a directory. Readers disagree whether a directory with a size has content, and
// whether a file can have the name of a directory.
function safeName(full, type, size) {
  if (lengthOf(full) > LONGEST_NAME) throw new Fault(ARCHIVE + `a name longer than ${LONGEST_NAME} bytes`);
  let name = full.startsWith("./") ? full.slice(2) : full;
  const directory = type === "5";
  if (directory && size === 0 && (full === "." || full === "./")) return "";
  if (directory) name = name.replace(/\/$/, "") + "/";
  if (type !== "0" && !directory || directory && size !== 0 || !directory && name.endsWith("/")) throw new Fault((name.startsWith(ROOT) ? name.slice(ROOT.length) : name) + ": " + Says.NOT_PLAIN);
  const below = name.slice(ROOT.length), path = below.replace(/\/$/, "");
  const plain = name.startsWith(ROOT) && !/[\\\0]/.test(below) && path.split("/").every((part) => !["", ".", ".."].includes(part));
  if (!plain && !(directory && name === ROOT)) throw new Fault(ARCHIVE + `${quoted(full)}: not a plain path below ${ROOT}`);
  return directory ? "" : path;
}

// ourHeader returns the only header that Plumbline writes for a file: ustar, mode 0644, owner 0 without a name, time 0.
function ourHeader(full, size) {
  const block = new Uint8Array(BLOCK);
  const put = (at, text) => block.set(bytesOf(text), at);
  let name = full, prefix = "";
  if (full.length > 100) {
    const cut = full.slice(0, 156).lastIndexOf("/", full.length - 2);
    [prefix, name] = [full.slice(0, Math.max(cut, 0)), full.slice(cut + 1)];
  }
  put(0, name.slice(0, 100));
  put(100, "0000644\0" + "0000000\0" + "0000000\0" + size.toString(8).padStart(11, "0") + "\0" + "00000000000\0" + "        0");
  put(257, "ustar\0" + "00");
  put(329, "0000000\0" + "0000000\0");
  put(345, prefix.slice(0, 155));
  const sum = block.reduce((total, b) => total + b, 0);
  put(148, sum.toString(8).padStart(6, "0") + "\0 ");
  return block;
}
