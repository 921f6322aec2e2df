// Shows the results of the worker. All text is set through `textContent`, so no byte of a file becomes markup.
"use strict";

const KINDS = [
  "records", "headers, trailers, engine metadata", "zeros", "left over from an older log",
  "torn tail: an incomplete record at the end", "lost with it: other parts of its records", "damage",
];
const COLUMNS = 128;
const FILE_LEN_MAX = 1 << 30;
const root = document.getElementById("try");
const state = document.getElementById("try-state");
const answer = document.getElementById("try-answer");
const script = document.getElementById("try-worker").textContent;
const workerAt = URL.createObjectURL(new Blob([script], { type: "text/javascript" }));
let worker;

const number = (value) => Number(value).toLocaleString("en");
const quantity = (count, noun) => `${number(count)} ${noun}${Number(count) === 1 ? "" : "s"}`;

function make(tag, style, ...children) {
  const element = document.createElement(tag);
  if (style) element.className = style;
  element.append(...children);
  return element;
}

// Reads a file. Without a file, reads the sample.
function read(file) {
  worker?.terminate();
  const name = file?.name ?? "sample.log";
  answer.setAttribute("aria-busy", "true");
  if (file?.size > FILE_LEN_MAX) {
    show(verdict("bad", "Too long for this page", name, "It reads files of up to 1 GiB. The command reads any length."));
    return;
  }
  state.textContent = `Reading ${name} …`;
  worker = new Worker(workerAt);
  worker.onmessage = ({ data }) => {
    if (data.saved) save(name, data.saved);
    else if (data.failed) show(verdict("bad", "Not read", name, data.failed));
    else if (!data.isLog) show(verdict("bad", "Not read", name, data.text));
    else show(...found(name, data, !file));
  };
  worker.onerror = (error) => show(verdict("bad", "Not read", name, error.message));
  worker.postMessage({ packed: document.getElementById("try-module").textContent.trim(), file });
}

function show(first, ...rest) {
  state.replaceChildren(first);
  answer.replaceChildren(...rest);
  answer.setAttribute("aria-busy", "false");
}

function verdict(style, title, ...lines) {
  const element = make("div", `try-verdict ${style}`, make("strong", "", title));
  element.append(...lines.filter(Boolean).map((text) => make("p", "", text)));
  return element;
}

// Converts the module's lines about a log to elements.
function found(name, { text, took }, isSample) {
  const lines = text.split("\n").map((line) => line.split("\t"));
  const of = (kind) => lines.filter((line) => line[0] === kind).map((line) => line.slice(1));
  const log = of("log")[0];
  const [regions, records] = [of("region"), of("record")];
  const [[cellLen, cells]] = of("cells");
  const out = [judged(name, log, took, isSample), map(cells, Number(cellLen)), legend(of("totals")[0])];
  if (regions.length) {
    out.push(make("h2", "", "What was skipped"), table(["offset", "bytes", "reason"], regions.map(regionRow)));
    const more = Number(of("more")[0][0]);
    if (more) out.push(make("p", "try-quiet", `and ${quantity(more, "more region")}; cordwood verify lists all`));
  }
  if (records.length) {
    const all = records.length === Number(log[4]);
    out.push(...saving(log[4]), make("h2", "", all ? "The records" : `The first ${records.length} records`));
    out.push(table(["offset", "bytes", "contents"], records.map(recordRow)));
  }
  return out;
}

function judged(name, log, took, isSample) {
  const [dialect, isKnown, isOk, end, records, salvaged, dataLen, fileLen, damagedLen, zeros, own, other] = log;
  const read = `${quantity(records, "record")}, ${quantity(dataLen, "byte")} of data`;
  const lines = [
    `${name}: ${quantity(fileLen, "byte")}, dialect ${dialect}${own && `, log number ${own}`}`,
    `${read}; read in ${took < 1 ? "less than 1" : number(Math.round(took))} ms`,
    salvaged > 0 && `${number(salvaged)} of these follow damage in the same block: engines drop them, salvage keeps them`,
    zeros && `zeros from ${number(zeros)} to the end: padding, space that was never written, or data that was lost`,
    isOk === "0" && `${quantity(damagedLen, "byte")} are damaged, or lost with the damage`,
    isSample && "A sample, with a flipped bit, a lost page and an incomplete end. Drop a log of your own.",
  ];
  if (other) return verdict("bad", "Another log", ...lines, `The whole file belongs to log ${other}, its name says ${own}.`);
  if (isOk === "0") {
    const isLost = isKnown === "0" && records === "0";
    const how = isLost && "The dialect could not be detected, so it was read as leveldb.";
    return verdict("bad", "Damaged", ...lines, how);
  }
  if (fileLen === "0") return verdict("", "An empty file", ...lines);
  if (zeros === "0") return verdict("torn", "Only zeros", ...lines);
  if (end === "torn_tail") return verdict("torn", "No damage, with a torn tail", ...lines);
  return verdict("", "No damage", ...lines);
}

function svg(tag, attributes) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}

// Draws the map. Each row of cells is a block, or several blocks in a long log. Adjacent cells of the same kind share
// a rectangle.
function map(cells, cellLen) {
  const rows = cells.match(new RegExp(`.{1,${COLUMNS}}`, "g")) ?? [];
  const picture = svg("svg", {
    viewBox: `0 0 ${COLUMNS} ${rows.length}`, height: rows.length * 16, preserveAspectRatio: "none", role: "img",
    "aria-label": "A map of the bytes of the log. The lists below say the same.",
  });
  rows.forEach((row, y) => {
    for (const run of row.matchAll(/(.)\1*/g)) {
      const [x, width, kind] = [run.index, run[0].length, run[1]];
      const box = svg("rect", { x, y, width, height: 0.82, fill: `var(--k${kind})` });
      const title = svg("title", {});
      const from = (y * COLUMNS + x) * cellLen;
      title.textContent = `${number(from)} to ${number(from + width * cellLen)}: ${KINDS[kind]}`;
      box.append(title);
      picture.append(box);
    }
  });
  const offsets = rows.map((_, y) => number(y * COLUMNS * cellLen)).join("\n");
  const marks = rows.map((row) => (/[56]/.test(row) ? "◀" : /4/.test(row) ? "◁" : " ")).join("\n");
  return make("div", "try-map", make("div", "", offsets), picture, make("div", "mark", marks));
}

function legend(totals) {
  const shown = KINDS.map((name, kind) => [name, kind]).reverse().filter(([, kind]) => totals[kind] !== "0");
  const items = shown.map(([name, kind]) => {
    const colour = make("i");
    colour.style.background = `var(--k${kind})`;
    return make("li", "", colour, `${name}, ${quantity(totals[kind], "byte")}`);
  });
  return make("ul", "try-legend", ...items);
}

function table(names, rows) {
  const head = make("tr", "", ...names.map((name, at) => make("th", at < 2 ? "n" : "", name)));
  return make("table", "", make("thead", "", head), make("tbody", "", ...rows));
}

function row(style, offset, length, ...contents) {
  const numbers = [offset, length].map((value) => make("td", "n", number(value)));
  return make("tr", style, ...numbers, make("td", ...contents));
}

function regionRow([start, end, severity, words, byte, bit]) {
  const flip = byte && make("strong", "", ` Bit ${bit} of byte ${number(byte)} was flipped.`);
  const style = { corruption: "bad", torn_tail: "torn" }[severity] ?? "";
  return row(style, start, end - start, "", words, ...(flip ? [".", flip] : []));
}

function recordRow([offset, length, isSalvaged, ...text]) {
  const note = isSalvaged === "1" ? [make("span", "try-quiet", " (after damage)")] : [];
  return row("", offset, length, "text", text.join("\t"), ...note);
}

function saving(count) {
  const button = make("button", "", `Save ${quantity(count, "readable record")} as a new log`);
  button.type = "button";
  button.onclick = () => worker.postMessage({ save: true });
  const note = "A log in the same dialect. No bit is flipped back: cordwood salvage --repair-bit-flips does that.";
  return [make("p", "", button), make("p", "try-quiet", note)];
}

function save(name, bytes) {
  const link = make("a");
  link.href = URL.createObjectURL(new Blob([bytes], { type: "application/octet-stream" }));
  link.download = `salvaged-${name}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

// The user can drop a log anywhere on the page.
addEventListener("dragover", (event) => {
  event.preventDefault();
  root.classList.add("try-over");
});
addEventListener("dragleave", (event) => event.relatedTarget ?? root.classList.remove("try-over"));
addEventListener("drop", (event) => {
  event.preventDefault();
  root.classList.remove("try-over");
  if (event.dataTransfer.files[0]) read(event.dataTransfer.files[0]);
});
document.getElementById("try-file").addEventListener("change", ({ target }) => {
  if (target.files[0]) read(target.files[0]);
});
read();
