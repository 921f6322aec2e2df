// A reader of all dialects, and a writer of those of LevelDB and wandb, with the policies skip, stop and
// raise: an example, written from docs/format. It keeps the whole file in memory, detects no dialect, and
// decompresses where Node's zlib has zstd.
//
//     python conformance/suite.py node conformance/readers/reader.mjs
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { basename } from "node:path";
import { createInterface } from "node:readline";
import * as zlib from "node:zlib";

const BLOCK = 32768, MIB = 1 << 20, [FULL, FIRST, MIDDLE, LAST] = [1, 2, 3, 4];
const INFO = new Set(
  ("zero_fill nonzero_trailer empty_first too_large_rest file_header unknown_version metadata ignored_kind " +
    "end_trailer stale not_read").split(" "), // O1
);
const severity = (reason) => (reason === "torn_tail" ? reason : INFO.has(reason) ? "info" : "corruption"); // O1

// The dialects: their types, each with the length of its header (reading.md, D1).

const parts = (type, header, step = 1, sort = "record") =>
  [FULL, FIRST, MIDDLE, LAST].map((part, i) => [type + i * step, { part, header, sort }]);
const own = (header, ...types) => types.map((type) => [type, { header, sort: "own", twoForms: header > 7 }]);
const PLAIN = parts(1, 7), NUMBERED = [...PLAIN, ...parts(5, 11)], RUN = "3a572642e1be00";
const DIALECTS = {
  leveldb: { types: PLAIN },
  rocksdb: { types: [...NUMBERED, ...own(7, 9, 10, 130), ...own(11, 11, 131)], longest: 11 },
  pebble: { types: [...NUMBERED, ...parts(9, 19)], longest: 19, endTrailer: true },
  recyclable: { types: NUMBERED, longest: 11, endTrailer: true },
  wandb: { types: PLAIN, header: RUN, ieee: true },
  wandb_old: { types: PLAIN, header: RUN, origin: 7, ieee: true },
  swanlab: { types: PLAIN, header: "3a53574cd6e102", versions: 3, ieee: true },
  packed: { types: [...PLAIN, ...parts(0x40, 7, 2, "container"), [0x48, { header: 7, sort: "mark" }]] },
};
for (const dialect of Object.values(DIALECTS))
  Object.assign(dialect, { types: new Map(dialect.types), longest: dialect.longest ?? 7, origin: dialect.origin ?? 0 });

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
const range = (start, end) => Array.from({ length: Math.max(0, end - start) }, (_, i) => start + i);

/** An error that no policy skips. */
class Refused extends Error {
  constructor(offset) {
    super();
    this.offset = offset;
  }
}
class Unsupported extends Error {}

/** The bytes of a file: which are a fragment (F1 to F8, D2 to D9). */
class Log { // D5, F6
  constructor(bytes, dialect, request = {}) {
    this.start = dialect.header ? 7 : 0;
    Object.assign(this, { bytes, dialect, size: bytes.length, verify: request.verify_checksums ?? true });
    this.isNumbered = dialect.longest > 7;
    Object.assign(this, { rangeStart: request.start ?? 0, rangeEnd: request.end ?? Infinity });
    Object.assign(this, { form: null, inDoubt: false }); // The length of the header of the log's fragments.
    if (this.isNumbered) this.number = request.log_number ?? this.namedNumber(request.path) ?? this.firstNumber();
  }
  checksum(bytes) { // F6, D1
    return this.dialect.ieee ? crc(IEEE, bytes) : masked(crc(CASTAGNOLI, bytes));
  }
  left(p) { // F1, D5
    return BLOCK - ((p - this.dialect.origin) % BLOCK);
  }
  blockEnd(p) { // F2
    return p + Math.min(this.left(p), this.size - p);
  }
  isRight(p, last, sum = this.bytes.readUInt32LE(p)) { // F6
    return sum === this.checksum(this.bytes.subarray(p + 6, last));
  }
  header(p, end) { // F8, D1
    const { bytes } = this, type = bytes[p + 6], length = bytes.readUInt16LE(p + 4), known = this.dialect.types.get(type);
    const found = { start: p, type, length, sort: "unknown", header: 7, ...known };
    if (this.isNumbered && (known ? known.twoForms : type & 1)) {
      const fits = (header) => p + header + length <= end && this.isRight(p, p + header + length);
      if (!fits(found.header) && fits(18 - found.header)) found.header = 18 - found.header; // D12
    }
    found.end = p + found.header + length; // F8
    found.number = found.header > 7 && p + 11 <= end ? bytes.readUInt32LE(p + 7) : null;
    return found;
  }
  // F8: a whole fragment with a valid checksum, which ends at or before `end`.
  valid(p, end) {
    if (p + 7 > end) return null;
    const found = this.header(p, end);
    return found.end <= end && this.isRight(p, found.end) ? found : null;
  }
  hasOther(found) { // D2, D7a
    return found.number !== null && this.number != null && found.number !== this.number;
  }
  isStale(found) { // D7a, D2
    const isOtherForm = found.sort === "record" && this.inDoubt && this.form !== null && found.header !== this.form;
    return this.hasOther(found) || (isOtherForm && this.isRight(found.start, found.end));
  }
  isEndTrailer(p, end) { // D8
    const { bytes, number } = this;
    if (!this.dialect.endTrailer || number == null || p + 11 > end) return false;
    return zeros(bytes.subarray(p, p + 6)) && bytes[p + 6] === 5 && bytes.readUInt32LE(p + 7) === (number + 1) >>> 0;
  }
  // F4a: where the stored checksum is that of the bytes up to a place from `from` to `end`; or null.
  prefixEnd(p, from, end) {
    const crcs = this.dialect.ieee ? IEEE : CASTAGNOLI, sum = this.bytes.readUInt32LE(p);
    let running = -1;
    for (let q = p + 6; q <= end; q++) {
      const found = ~running >>> 0;
      if (q >= from && (this.dialect.ieee ? found : masked(found)) === sum) return q;
      if (q < end) running = step(crcs, running, this.bytes[q]);
    }
    return null;
  }
  // F4: whether a crash can have left the header at `p`.
  isTorn(p, end) {
    const { bytes } = this, { type, length, part, sort, header } = this.header(p, end);
    if (this.wasWrittenWhole(p, end) || this.prefixEnd(p, p + header, end) !== null) return false; // D3, F4a
    if (range(p + 7, end).some((q) => this.isOwn(this.valid(q, end)))) return false; // F4b
    if (this.number != null) return true; // D3
    if (type === 0) return zeros(bytes.subarray(p + 7, end)); // F4c
    if (sort === "unknown" || (sort === "mark" && length < 10)) return false; // F4c, K12
    if (sort === "own") return type === 9 ? length === 4 : type > 128 ? length === 24 : length > 0 && length % 6 === 0; // D3
    if ((part === FIRST || part === MIDDLE) && this.left(p) - (header + length) >= 7 && !this.isCompressed) return false; // F4d
    return !((part === MIDDLE || part === LAST) && p === this.start); // F4e
  }
  // F4b, D3: a part of a record or of a container that is not stale.
  isOwn(found) {
    return Boolean(found?.part) && !this.isStale(found);
  }
  // F1 to F8: the bytes at `p`: an event, or null for a trailer. `inside`: a FIRST or MIDDLE precedes them in the block.
  classify(p, inside) {
    const { bytes, dialect } = this, left = this.left(p), end = this.blockEnd(p), rest = bytes.subarray(p, end);
    const skip = (reason) => ({ start: p, end, reason });
    const fill = () => skip(zeros(rest) && !inside ? "zero_fill" : "torn_tail"); // F2
    if (left < 7) return zeros(rest) || inside ? null : skip("nonzero_trailer"); // F1
    if (left < dialect.longest && zeros(rest)) return end - p === left ? null : fill(); // D4
    if (end - p < 7) return fill(); // F2
    if (this.isEndTrailer(p, end)) return { start: p, end: p + 11, reason: "end_trailer" }; // D8
    const found = this.header(p, end), { type, length, sort } = found;
    if (found.header + length > left) return skip("bad_length"); // F3
    if (found.end > end) return skip(this.isTorn(p, end) ? "torn_tail" : "bad_length"); // F4
    if (type === 0 && length === 0) return skip(zeros(rest) ? "zero_fill" : "zero_header"); // F5
    const isRight = (found.isRight = this.isRight(p, found.end));
    if (!isRight && (this.verify || this.hasOther(found))) return skip("checksum_mismatch"); // F6, D2
    if (this.isStale(found)) return { ...found, reason: "stale" }; // D7a
    const isIgnored = dialect === DIALECTS.rocksdb && type > 127; // D12
    if (sort === "unknown") return { ...found, reason: isIgnored ? "ignored_kind" : "unknown_kind" }; // F7, D12
    const payload = bytes.subarray(p + found.header, found.end); // F8
    if (sort === "own") return { ...found, reason: this.ownReason(found, payload, isRight) }; // D10
    if (sort === "mark") return { ...found, reason: this.markReason(found, payload, isRight) }; // K2
    return { ...found, payload };
  }
  // D10: RocksDB's own records.
  ownReason({ start, type, length }, payload, isRight) {
    const isSizes = () => length % 6 === 0 && range(0, length / 6).every((i) => payload.readUInt16LE(6 * i + 4) !== 0);
    const isKind = () => start === 0 && length === 4 && isRight && [0, 7].includes(payload.readUInt32LE(0)); // D10b
    const isGood = type === 9 ? isKind() : type > 128 ? length === 24 : isSizes();
    return isGood ? "metadata" : "bad_metadata";
  }
  // K2, K9, K10: the mark of a packed log.
  markReason({ start }, payload, isRight) {
    if (!isRight || payload.length < 10 || payload.toString("latin1", 0, 8) !== "cordwood") return "bad_metadata";
    if (payload[8] !== 1 || payload[9] > 1) throw new Refused(start);
    return "metadata";
  }

  // Logs with numbers: numbered.md (D7).

  namedNumber(path) {
    const name = /^(\d{6}|[1-9]\d{6,})(-\d{3})?\.log$/.exec(basename(path ?? ""));
    return name ? Number(name[1]) % 2 ** 32 : undefined;
  }
  // D7: the number of a fragment in the first three blocks, or null.
  firstNumber() {
    let pair = null;
    if (this.dialect.endTrailer && this.size >= 11) {
      this.number = (this.bytes.readUInt32LE(7) - 1) >>> 0;
      if (this.isEndTrailer(0, 11)) return this.number; // D8
      this.number = null;
    }
    for (let p = 0; p < Math.min(this.size, 3 * BLOCK); p = this.blockEnd(p)) {
      const end = this.blockEnd(p);
      let found = this.valid(p, end), number = null;
      for (; found && number === null; found = found.part ? null : this.valid(found.end, end)) {
        number = found.number;
        if (found.part && number === null) return null;
      }
      if (number !== null) return Math.max(pair ?? 0, number);
      for (let q = p + 1; q + 7 <= end && pair === null; q++) {
        if ((this.dialect.types.get(this.bytes[q + 6])?.header ?? 7) === 7) continue;
        const one = this.valid(q, end);
        if (one?.part && this.valid(one.end, end)) pair = one.number;
      }
    }
    return pair;
  }
  // D7a: whether the bytes contain, after the first, a fragment of this log, or a stale one.
  contains(p, end, isStale = false) {
    return range(p + 1, end).some((q) => {
      const type = this.dialect.types.get(this.bytes[q + 6]);
      if (!type?.part || q + type.header > end) return false;
      if (isStale !== (type.header > 7 && this.bytes.readUInt32LE(q + 7) !== this.number)) return false;
      return (isStale || this.form === null || type.header === this.form) && this.valid(q, end);
    });
  }
  // D7a: whether the damaged fragment at `p` was written whole.
  wasWrittenWhole(p, end) {
    if (this.number == null || end - p < 11) return false;
    const isOurs = (found) => found?.number === this.number && (found.part || found.sort === "own");
    const isForm = ({ header }) => this.form === null || header === this.form;
    const stated = this.header(p, end);
    if (isOurs(stated) && isForm(stated) && stated.part && this.isEndTrailer(stated.end, end)) return true;
    const isShort = (found) => isOurs(found) && found.header === 11 && isForm(found);
    if (isShort(stated) && this.prefixEnd(p, p + 11, end) !== null) return true;
    const bits = [...range(0, 56), ...this.flips(p, Math.min(stated.end, end))];
    return bits.some((bit) => isShort(this.flipped(p, end, bit)));
  }
  // D7a: the bits from `p + 7` to `last` of which one, flipped, makes the checksum right.
  *flips(p, last) {
    const sum = crc(CASTAGNOLI, this.bytes.subarray(p + 6, last)), stored = this.bytes.readUInt32LE(p);
    let changes = range(0, 8).map((bit) => step(CASTAGNOLI, 0, 1 << bit)); // By a flip in the byte at `q`.
    for (let q = last - 1; q >= p + 7; q--) {
      for (const bit of range(0, 8)) if (masked((sum ^ changes[bit]) >>> 0) === stored) yield 8 * (q - p) + bit;
      changes = changes.map((change) => step(CASTAGNOLI, change, 0));
    }
  }
  // D7a: the fragment at `p` if it is valid with one bit flipped back.
  flipped(p, end, bit) {
    const at = p + (bit >> 3);
    this.bytes[at] ^= 1 << (bit & 7);
    const found = this.valid(p, end);
    this.bytes[at] ^= 1 << (bit & 7);
    return found;
  }
  // D7a to D7h: the regions of damage, or of a possible end of the log, at `found`.
  *judged(found) {
    const p = found.start, end = this.blockEnd(p), isStale = found.reason === "stale";
    const isDamage = this.contains(p, end) || (!isStale && this.wasWrittenWhole(p, end));
    if ((this.form === 7 && !isStale) || p < this.rangeStart) {
      this.inDoubt = !isDamage;
      return yield { ...found, end };
    }
    const stated = this.header(p, end), isHeader = stated.part && stated.number === this.number && !isStale;
    const ownEnd = isHeader && (this.form ?? stated.header) === stated.header ? Math.min(stated.end, end) : null;
    const state = { p, end, next: end, isSeen: isStale || (!isDamage && this.contains(p, end, true)), hasRoom: false };
    this.inDoubt = true;
    const hasEnded = !isDamage && this.looksAhead(state);
    this.inDoubt = false;
    const { next, isSeen, hasRoom } = state, isClosed = hasEnded && (isSeen || !hasRoom);
    const isNumbered = this.form === 11 || (this.form === null && ownEnd !== null);
    const region = (start, end, reason, closes) => ({ start, end, reason, closes });
    if (hasEnded && (isSeen || (isClosed && isNumbered && ownEnd !== next))) {
      if (ownEnd !== null) yield region(p, ownEnd, "torn_tail", "torn_tail");
      const start = ownEnd ?? p;
      if (start < next) yield { ...region(start, next, "stale", "torn_tail"), isRest: start > p };
      return;
    }
    const isTorn = hasEnded && this.form === 19;
    yield region(p, state.end, isTorn ? "torn_tail" : isStale ? "lost_write" : found.reason, isTorn ? "torn_tail" : null);
    if (state.end < next) yield { ...region(state.end, next, "zero_fill"), isRest: true };
  }
  // D7b to D7h: looks at the blocks after an undecided region. Returns whether the log may have ended.
  looksAhead(state) {
    for (;;) {
      const q = state.next;
      if (q >= this.size) return true;
      const end = this.blockEnd(q), found = this.classify(q, false) ?? { reason: "zero_fill", end };
      const isStale = found.reason === "stale";
      const isOwn = !isStale && (!found.reason || ["own", "mark"].includes(found.sort) || found.reason === "end_trailer");
      if (q >= this.rangeEnd) {
        state.isSeen ||= isStale; // D7h
        if (!isOwn && !state.isSeen && end - q > 11) return false;
        return !isOwn;
      }
      const isUnknown = found.sort === "unknown" && ["unknown_kind", "ignored_kind"].includes(found.reason);
      if (isOwn || (isUnknown && found.number === this.number)) return false;
      if (found.reason !== "zero_fill") {
        const isContained = this.contains(q, end) || (!isStale && this.wasWrittenWhole(q, end));
        if (isContained && isUnknown) return false;
        state.isSeen ||= isStale || (!isContained && this.contains(q, end, true));
        state.hasRoom ||= end - q > 11;
        state.end = end;
        if (isContained) return (state.next = end), false;
      }
      state.next = end;
    }
  }
  *fragments(from) { // F8, D7a
    const doubtful = ["stale", "bad_length", "zero_header", "checksum_mismatch"];
    let p = from, inside = false;
    while (p < this.size) {
      if (this.left(p) === BLOCK) inside = false;
      const found = this.classify(p, inside);
      inside = false;
      if (found && this.number != null && p < this.rangeEnd && doubtful.includes(found.reason)) {
        for (const event of this.judged(found)) yield ((p = event.end), event);
      } else if (found) {
        if (found.number != null && found.isRight && found.sort !== "unknown") this.number ??= found.number;
        if (!found.reason) {
          if (found.isRight) this.form = found.header;
          this.inDoubt = false;
          inside = found.part === FIRST || found.part === MIDDLE;
        }
        yield ((p = found.end), found);
        if (found.reason === "end_trailer") {
          if (p < this.size) yield { start: Math.max(p, this.rangeStart), end: this.size, reason: "stale" };
          return;
        }
      } else p = this.blockEnd(p);
    }
  }

  // D5, D6: the file header.
  *fileHeader() {
    const { header, versions } = this.dialect, { bytes } = this;
    if (!header || !bytes.length) return;
    const given = bytes.subarray(0, 7), block = bytes.subarray(0, this.dialect.origin + BLOCK), text = given.toString("hex");
    if (given.length < 7) {
      const reason = header.startsWith(text) ? "torn_tail" : zeros(given) ? "zero_fill" : "bad_file_header";
      yield { start: 0, end: given.length, reason };
    } else if (zeros(block)) yield { start: 0, end: 7, reason: "zero_fill" };
    else if (text === header && !versions) yield { start: 0, end: 7, reason: "file_header" };
    else {
      const isRight = versions && text.startsWith(header.slice(0, 12)) && !this.isContradicted(given[6]);
      yield { start: 0, end: 7, reason: !isRight ? "bad_file_header" : given[6] < versions ? "file_header" : "unknown_version" };
    }
  }
  // D6: whether the first fragment shows that the version of SwanLab is wrong.
  isContradicted(version) {
    const first = this.valid(7, this.blockEnd(7));
    if (first?.part !== FULL && first?.part !== FIRST) return false;
    const payload = this.bytes.subarray(14, first.end);
    return version < 2 ? !isText(payload) : payload.toString("latin1").startsWith('{"model_type"');
  }
}

// W8, D6: UTF-8 without control bytes; the last character may be incomplete.
function isText(bytes) {
  if (bytes.some((byte) => (byte < 32 && ![9, 10, 12, 13].includes(byte)) || byte === 127)) return false;
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(bytes, { stream: true });
    return true;
  } catch {
    return false;
  }
}

/** The events of a log: its fragments joined to records and containers (A1 to A6, R1 to R5, K1 to K13). */
class Reader {
  constructor(log, { start = 0, end = Infinity, record_len_max = 1024 * MIB }) {
    Object.assign(this, { log, start, end, max: record_len_max, budget: Math.max(256 * MIB, record_len_max > 1024 * MIB && record_len_max) });
    const origin = log.dialect.origin; // R1
    this.from = start <= log.start ? log.start : Math.max(log.start, start - ((start - origin) % BLOCK)); // R1
    // The fragments of a record so far; the rest of one that is too long (A6); the event that ended the range (E2).
    this.pending = this.rest = this.last = null;
    this.isFresh = start > 0; // R3: MIDDLE and LAST belong to the range before.
    this.claimed = 0; // D13, C6
  }
  // A2, A3, A6: the region of a pending record or of a rest, if there is one.
  *closed(reason) {
    const { pending, rest } = this;
    this.pending = this.rest = null;
    if (rest?.end) yield { ...rest, reason: "too_large_rest" };
    if (pending) yield { start: pending[0].start, end: pending.at(-1).end, reason: reason ?? (size(pending) ? "missing_end" : "empty_first") };
  }
  *joined() { // R4, A4
    const { log } = this;
    if (this.start === 0) yield* log.fileHeader();
    for (const found of log.fragments(this.from)) {
      const isPart = found.part && !found.reason, continues = isPart && (found.part === MIDDLE || found.part === LAST);
      if (found.start >= this.end && !continues && !found.isRest) {
        this.last ??= found.start;
        yield* this.closedBy(found);
        return;
      }
      if (!isPart) {
        yield* this.closedBy(found);
        yield found;
      } else yield* this.part(found);
      if (found.start >= this.start && !continues) this.isFresh = false;
    }
    yield* this.closed("torn_tail"); // A2
  }
  // A4: what `found`, which is no part of it, makes of a pending record.
  closedBy({ reason, part, sort, closes }) {
    if (!reason && part) return this.closed();
    if (reason === "end_trailer") return this.closed("torn_tail"); // D8
    return this.closed(closes ?? (reason === "torn_tail" ? reason : "interrupted_record"));
  }
  *part(found) { // A1, A2, A3
    const { part, sort } = found, open = this.pending ?? this.rest?.parts;
    if (open && open[0].sort !== sort) yield* this.closed(); // K1
    if (part === FULL || part === FIRST) { // A2
      yield* this.closed();
      this.pending = [];
    } else if (this.rest) { // A6
      if (this.isFresh && found.start >= this.start) return; // R3
      this.rest = { ...this.rest, start: this.rest.start ?? found.start, end: found.end }; // A6
      if (part === LAST) yield* this.closed(); // A6
      return;
    } else if (!this.pending) { // A1
      if (!this.isFresh || found.start < this.start) yield { ...found, reason: "missing_start" }; // A1, R3
      return;
    }
    this.pending.push(found);
    if (size(this.pending) > (sort === "container" ? Math.max(this.max, MIB) + 5 * 32768 : this.max)) { // A5, K8
      yield { start: this.pending[0].start, end: found.end, reason: "record_too_large" }; // A5, K8
      this.pending = null;
      if (part !== FULL && part !== LAST) this.rest = { parts: [found] }; // A6
    } else if (part === FULL || part === LAST) { // A2
      const parts = this.pending;
      this.pending = null;
      yield* this.whole({ start: parts[0].start, end: found.end, data: Buffer.concat(parts.map(({ payload }) => payload)) }, sort);
    }
  }
  whole(found, sort) { // K3, D13
    if (sort === "container") return this.container(found);
    return [this.log.isCompressed && found.data.length ? this.decompressed(found, this.max, false) : found];
  }
  // A frame of zstd (D13, C4 to C7): its content, or the region.
  decompressed({ start, end, data }, max, isContainer) {
    const region = (reason) => ({ start, end, reason }), header = frameHeader(data), length = header?.length;
    if (!header || length > 131072 * (1 + Math.floor(data.length / 3))) return region("bad_compression"); // C4
    if (length > max) return region("record_too_large"); // C5, D13
    if (isContainer && length > this.budget) throw new Refused(start); // C6
    this.claimed += length; // C6, D13
    if (this.claimed > this.budget + 200 * (end - this.from)) throw new Refused(start); // C6, D13
    if (frameEnd(data, header) !== data.length) return region("bad_compression"); // C7
    try { // C7
      const content = zlib.zstdDecompressSync(data, { maxOutputLength: length || 1 });
      return content.length === length ? { start, end, data: content } : region("bad_compression");
    } catch {
      return region("bad_compression");
    }
  }
  // The records of a container (C2 to C9), or the region.
  *container(found) {
    const { start, end, data } = found, bad = (reason = "bad_container") => ({ start, end, reason }), [codec] = data;
    if (!data.length) return yield bad(); // C2
    if (codec > 1 || (codec === 1 && !zlib.zstdDecompressSync)) { // C2, K9
      if (!this.log.verify) return yield bad("unsupported_compression"); // K9
      if (start < this.start) return; // K9, K13
      if (codec === 1) throw new Unsupported("zstd");
      throw new Refused(start); // K9
    }
    const [count, at] = varint(data, 1), blockEnd = start + this.log.left(start);
    if (!count || count > 32768 || start + count > Math.min(end, blockEnd)) return yield bad(); // C3
    let body = data.subarray(at);
    if (codec === 1) {
      const content = this.decompressed({ start, end, data: body }, Math.max(this.max, MIB) + 5 * count, true); // C5
      if (content.reason) return yield content;
      body = content.data;
    }
    const lengths = [];
    let p = 0, sum = 0; // C8
    for (let i = 0; i < count; i++) {
      const [length, next] = varint(body, p);
      if (length === null) return yield bad();
      lengths.push(length);
      p = next;
      sum += length;
    }
    if (p + sum !== body.length) return yield bad(); // C8
    for (const [i, length] of lengths.entries()) { // C9
      const span = { start: start + i, end: i + 1 < count ? start + i + 1 : end, isInside: true }; // K6
      yield length > this.max ? { ...span, reason: "record_too_large" } : { ...span, data: body.subarray(p, p + length) }; // C9
      p += length; // C9
    }
  }
  // R1, R3, R5: the events whose start is in the range.
  *events() {
    if (this.start >= this.end) return void (this.last = this.end); // R5
    let isEmpty = true;
    for (const event of this.joined()) {
      if (event.start < this.start) continue;
      if (event.start >= this.end && event.isInside) this.last = this.end; // K13
      else yield ((isEmpty = false), event);
    }
    if (isEmpty && this.end < this.log.size) this.last = this.end; // E2
  }
}

const size = (parts) => parts.reduce((sum, { payload }) => sum + payload.length, 0);

// K4: the number at `p` and its end, or null.
function varint(bytes, p) {
  let value = 0;
  for (let i = 0; i < 5 && p + i < bytes.length; i++) {
    const byte = bytes[p + i];
    value += (byte & 127) * 2 ** (7 * i);
    if (byte < 128) return i > 0 && byte === 0 ? [null, p] : [value, p + i + 1];
  }
  return [null, p];
}

// C4: what the header of a frame states (RFC 8878), or null.
function frameHeader(frame) {
  if (frame.length < 6 || frame.readUInt32LE(0) !== 0xfd2fb528) return null;
  const flags = frame[4], isSingle = (flags >> 5) & 1, sizeLen = flags >> 6 ? 1 << (flags >> 6) : isSingle;
  const at = 6 - isSingle + [0, 1, 2, 4][flags & 3], end = at + sizeLen;
  if (flags & 8 || !sizeLen || end > frame.length) return null;
  const high = sizeLen === 8 ? frame.readUInt32LE(at + 4) * 2 ** 32 : sizeLen === 2 ? 256 : 0;
  return { length: high + frame.readUIntLE(at, Math.min(sizeLen, 4)), end, tail: flags & 4 };
}
// C7: where a frame ends, by its blocks.
function frameEnd(frame, header) {
  for (let p = header.end; p + 3 <= frame.length; ) {
    const block = frame.readUIntLE(p, 3), length = ((block >> 1) & 3) === 1 ? 1 : block >> 3;
    p += 3 + length;
    if (block & 1) return p + header.tail;
  }
  return null;
}

function read(request, dialect) { // E1 to E3, O1 to O3
  const { path, policy } = request;
  if (!existsSync(path) || statSync(path).isDirectory()) return { error: "not a file" };
  const bytes = readFileSync(path), length = bytes.length, start = request.start ?? 0;
  if (start > length) return { records: [], end: ["refused", start] }; // D15
  const log = new Log(bytes, dialect, request), records = [], regions = [], raised = [];
  let end = null, torn = null, reader;
  try {
    log.isCompressed = isCompressed(log, request);
    reader = new Reader(log, request);
    for (const { start, end: after, reason, data } of reader.events()) {
      if (reason !== "stale" && reason !== "end_trailer") torn = reason === "torn_tail" ? (torn ?? start) : null;
      if (!reason) records.push([start, after, data.length, crc(CASTAGNOLI, data).toString(16).padStart(8, "0")]);
      else regions.push([reason, start, after, severity(reason)]);
      if (!reason || severity(reason) !== "corruption") continue;
      raised.push(start);
      if (policy !== "stop") continue; // O3
      const last = Math.min(length, request.end ?? length);
      if (after < last) regions.push(["not_read", after, last, "info"]);
      end = ["stopped", start];
      break;
    }
  } catch (error) {
    if (error instanceof Unsupported) return { unsupported: error.message };
    if (!(error instanceof Refused)) throw error;
    end = ["refused", error.offset];
  }
  end ??= torn !== null ? ["torn_tail", torn] : ["clean", reader.last ?? length];
  const ok = !regions.some((region) => region[3] === "corruption");
  return { records, regions, end, ok, ...(policy === "raise" && { raised }) };
}

// D10b: whether the records of the log are frames.
function isCompressed(log, { compression }) {
  if (log.dialect !== DIALECTS.rocksdb) return false;
  const first = log.valid(0, log.blockEnd(0)), isStated = first?.type === 9 && first.length === 4;
  const kind = compression ?? (isStated ? log.bytes.readUInt32LE(7) : 0);
  if (![0, 7, "zstd"].includes(kind)) throw new Refused(0);
  if ((kind === 7 || kind === "zstd") && !zlib.zstdDecompressSync) throw new Unsupported("zstd");
  return kind === 7 || kind === "zstd";
}

function write({ path, records, log_number: number }, dialect) { // F1, F8, D1
  const log = new Log(Buffer.alloc(0), dialect), out = [Buffer.from(dialect.header ?? "", "hex")];
  let at = out[0].length;
  const put = (bytes) => void (out.push(bytes), (at += bytes.length));
  const numbered = Buffer.alloc(number === undefined ? 0 : 4), length = 7 + numbered.length;
  if (number !== undefined) numbered.writeUInt32LE(number);
  for (const record of records) {
    let rest = Buffer.from(record, "hex"), started = false;
    do {
      if (log.left(at) < length) put(Buffer.alloc(log.left(at)));
      const part = rest.subarray(0, log.left(at) - length), header = Buffer.alloc(6);
      rest = rest.subarray(part.length);
      const type = rest.length ? (started ? MIDDLE : FIRST) : started ? LAST : FULL;
      const body = Buffer.concat([Buffer.of(type + numbered.length), numbered, part]); // 1 to 4, or 5 to 8.
      header.writeUInt32LE(log.checksum(body));
      header.writeUInt16LE(part.length, 4);
      put(Buffer.concat([header, body]));
      started = true;
    } while (rest.length);
  }
  writeFileSync(path, Buffer.concat(out));
  return {};
}

function answer(request) {
  const features = ["ranges", "record_len_max", "verify_checksums", "log_number", "write"];
  const zstd = zlib.zstdDecompressSync ? ["zstd", "compression"] : [];
  if (request.do === "describe")
    return { dialects: Object.keys(DIALECTS), policies: ["skip", "stop", "raise"], features: [...features, ...zstd] };
  const name = request.dialect ?? request.detected ?? "leveldb", dialect = DIALECTS[name];
  return request.do === "read" ? read(request, dialect) : write(request, dialect);
}

for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  console.log(JSON.stringify({ id: request.id, ...answer(request) }));
}
