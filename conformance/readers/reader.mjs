// A reader and writer of LevelDB's dialect and of those of wandb, with the policies skip, stop and
// raise: an example, written from docs/format/implement.md. It keeps the whole file in memory.
//
//     python conformance/suite.py node conformance/readers/reader.mjs
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";

const BLOCK = 32768, [FULL, FIRST, MIDDLE, LAST] = [1, 2, 3, 4];
const INFO = new Set(["zero_fill", "nonzero_trailer", "empty_first", "file_header", "metadata", "not_read"]);
const severity = (reason) => (reason === "torn_tail" ? reason : INFO.has(reason) ? "info" : "corruption");
const DIALECTS = {
  leveldb: { header: null, origin: 0 },
  wandb: { header: "3a572642e1be00", origin: 0, ieee: true },
  wandb_old: { header: "3a572642e1be00", origin: 7, ieee: true },
};

const table = (polynomial) =>
  Uint32Array.from({ length: 256 }, (_, byte) => {
    for (let i = 0; i < 8; i++) byte = (byte >>> 1) ^ (byte & 1 ? polynomial : 0);
    return byte;
  });
const CASTAGNOLI = table(0x82f63b78), IEEE = table(0xedb88320);
const step = (crcs, crc, byte) => (crc >>> 8) ^ crcs[(crc ^ byte) & 255];
const crc = (crcs, bytes) => ~bytes.reduce((sum, byte) => step(crcs, sum, byte), -1) >>> 0;
const masked = (sum) => (((sum >>> 15) | (sum << 17)) + 0xa282ead8) >>> 0;
const zeros = (bytes) => bytes.every((byte) => byte === 0);

class Log {
  constructor(bytes, dialect) {
    Object.assign(this, { bytes, dialect, start: dialect.header ? 7 : 0 });
  }
  checksum(bytes) {
    return this.dialect.ieee ? crc(IEEE, bytes) : masked(crc(CASTAGNOLI, bytes));
  }
  left(p) {
    return BLOCK - ((p - this.dialect.origin) % BLOCK);
  }
  header(p) {
    const { bytes } = this;
    return { sum: bytes.readUInt32LE(p), length: bytes.readUInt16LE(p + 4), type: bytes[p + 6] };
  }
  // A whole fragment with a valid checksum, which ends at or before `end`.
  isValid(p, end) {
    if (p + 7 > end) return false;
    const { sum, length } = this.header(p);
    return p + 7 + length <= end && sum === this.checksum(this.bytes.subarray(p + 6, p + 7 + length));
  }
  // F4: whether a crash can have left the header at `p`.
  isTorn(p, end) {
    const { bytes } = this, { sum, length, type } = this.header(p);
    for (let q = p + 7; q < end; q++)
      if (bytes[q + 6] >= FULL && bytes[q + 6] <= LAST && this.isValid(q, end)) return false; // F4b
    if (type === 0) return zeros(bytes.subarray(p + 7, end)) && !this.matchesPrefix(p, end, sum);
    if (type > LAST || this.matchesPrefix(p, end, sum)) return false; // F4c, F4a
    if ((type === FIRST || type === MIDDLE) && this.left(p) - (7 + length) >= 7) return false; // F4d
    return !((type === MIDDLE || type === LAST) && p === this.start); // F4e
  }
  matchesPrefix(p, end, sum) {
    const crcs = this.dialect.ieee ? IEEE : CASTAGNOLI;
    let running = step(crcs, -1, this.bytes[p + 6]);
    for (let q = p + 7; ; q++) {
      const found = ~running >>> 0;
      if ((this.dialect.ieee ? found : masked(found)) === sum) return true;
      if (q >= end) return false;
      running = step(crcs, running, this.bytes[q]);
    }
  }
  *fragments() {
    const { bytes } = this;
    let p = this.start, inside = false; // `inside`: a FIRST or MIDDLE precedes `p` in its block.
    while (p < bytes.length) {
      const left = this.left(p), avail = Math.min(left, bytes.length - p), end = p + avail;
      const rest = bytes.subarray(p, end);
      if (left === BLOCK) inside = false;
      const skip = (reason) => ({ start: p, end, reason });
      let event;
      if (left < 7) event = zeros(rest) || inside ? null : skip("nonzero_trailer"); // F1
      else if (avail < 7) event = skip(zeros(rest) && !inside ? "zero_fill" : "torn_tail"); // F2
      else {
        const { length, type } = this.header(p);
        if (7 + length > left) event = skip("bad_length"); // F3
        else if (7 + length > avail) event = skip(this.isTorn(p, end) ? "torn_tail" : "bad_length"); // F4
        else if (type === 0 && length === 0) event = skip(zeros(rest) ? "zero_fill" : "zero_header"); // F5
        else if (!this.isValid(p, end)) event = skip("checksum_mismatch"); // F6
        else {
          const last = p + 7 + length;
          const reason = type < FULL || type > LAST ? "unknown_kind" : null; // F7, F8
          event = { start: p, end: last, reason, type, payload: bytes.subarray(p + 7, last) };
        }
      }
      if (event) yield event;
      p = event ? event.end : end;
      inside = Boolean(event) && !event.reason && (event.type === FIRST || event.type === MIDDLE);
    }
  }
  *fileHeader() {
    const { header } = this.dialect, { bytes } = this;
    if (!header || !bytes.length) return;
    const given = bytes.subarray(0, 7), block = bytes.subarray(0, this.dialect.origin + BLOCK);
    if (given.length < 7) {
      const reason = header.startsWith(given.toString("hex")) ? "torn_tail" : zeros(given) ? "zero_fill" : "bad_file_header";
      yield { start: 0, end: given.length, reason };
    } else if (zeros(block)) yield { start: 0, end: 7, reason: "zero_fill" };
    else yield { start: 0, end: 7, reason: given.toString("hex") === header ? "file_header" : "bad_file_header" };
  }
  *events() {
    yield* this.fileHeader();
    let pending = null; // The fragments of a record so far.
    const size = () => pending.reduce((sum, part) => sum + part.payload.length, 0);
    const abandoned = (reason) => {
      const region = { start: pending[0].start, end: pending.at(-1).end, reason };
      pending = null;
      return region;
    };
    const record = (parts) => ({ start: parts[0].start, end: parts.at(-1).end, data: Buffer.concat(parts.map((part) => part.payload)) });
    for (const found of this.fragments()) {
      if (found.reason) {
        if (pending) yield abandoned(found.reason === "torn_tail" ? "torn_tail" : "interrupted_record"); // A4
        yield found;
      } else if (found.type === FULL || found.type === FIRST) {
        if (pending) yield abandoned(size() ? "missing_end" : "empty_first");
        if (found.type === FULL) yield record([found]);
        else pending = [found];
      } else if (!pending) yield { ...found, reason: "missing_start" };
      else {
        pending.push(found);
        if (found.type === LAST) {
          yield record(pending);
          pending = null;
        }
      }
    }
    if (pending) yield abandoned("torn_tail");
  }
}

function read({ path, policy }, dialect) {
  if (!existsSync(path) || statSync(path).isDirectory()) return { error: "not a file" };
  const log = new Log(readFileSync(path), dialect), size = log.bytes.length;
  const records = [], regions = [], raised = [];
  let end = ["clean", size], torn = null;
  for (const { start, end: after, reason, data } of log.events()) {
    torn = reason === "torn_tail" ? (torn ?? start) : null;
    if (!reason) records.push([start, after, data.length, crc(CASTAGNOLI, data).toString(16).padStart(8, "0")]);
    else regions.push([reason, start, after, severity(reason)]);
    if (!reason || severity(reason) !== "corruption") continue;
    raised.push(start);
    if (policy !== "stop") continue;
    if (after < size) regions.push(["not_read", after, size, "info"]);
    end = ["stopped", start];
    break;
  }
  if (torn !== null && end[0] === "clean") end = ["torn_tail", torn];
  const ok = !regions.some((region) => region[3] === "corruption");
  return { records, regions, end, ok, ...(policy === "raise" && { raised }) };
}

function write({ path, records }, dialect) {
  const log = new Log(Buffer.alloc(0), dialect), out = [Buffer.from(dialect.header ?? "", "hex")];
  let at = out[0].length;
  const put = (bytes) => void (out.push(bytes), (at += bytes.length));
  for (const record of records) {
    let rest = Buffer.from(record, "hex"), started = false;
    do {
      if (log.left(at) < 7) put(Buffer.alloc(log.left(at)));
      const part = rest.subarray(0, log.left(at) - 7);
      rest = rest.subarray(part.length);
      const type = rest.length ? (started ? MIDDLE : FIRST) : started ? LAST : FULL;
      const header = Buffer.alloc(7);
      header.writeUInt32LE(log.checksum(Buffer.concat([Buffer.of(type), part])));
      header.writeUInt16LE(part.length, 4);
      header[6] = type;
      put(Buffer.concat([header, part]));
      started = true;
    } while (rest.length);
  }
  writeFileSync(path, Buffer.concat(out));
  return {};
}

function answer(request) {
  if (request.do === "describe")
    return { dialects: Object.keys(DIALECTS), policies: ["skip", "stop", "raise"], features: ["write"] };
  const dialect = DIALECTS[request.dialect ?? request.detected ?? "leveldb"];
  return request.do === "write" ? write(request, dialect) : read(request, dialect);
}

for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  console.log(JSON.stringify({ id: request.id, ...answer(request) }));
}
