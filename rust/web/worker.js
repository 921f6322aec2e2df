// Reads one log with the module in the background, so that the page stays responsive.
"use strict";

const PART_LEN = 1 << 24;
let wasm, nameLen;

// Returns a view of the module's memory. It is valid only until the next call, which may move the memory.
const bytes = (at, len) => new Uint8Array(wasm.memory.buffer, at >>> 0, len >>> 0);
const answer = () => bytes(wasm.answer_at(), wasm.answer_len());

async function start(packed) {
  const zipped = Uint8Array.from(atob(packed), (character) => character.charCodeAt(0));
  const stream = new Blob([zipped]).stream().pipeThrough(new DecompressionStream("gzip"));
  const { instance } = await WebAssembly.instantiate(await new Response(stream).arrayBuffer());
  wasm = instance.exports;
}

// Copies the name and the file into the module. The file is read in parts, because two whole copies may not fit into
// memory.
async function load(file) {
  const name = new TextEncoder().encode(file.name);
  const at = wasm.room(name.length + file.size);
  if (!at) throw new Error("the browser has no memory for this file");
  bytes(at, name.length).set(name);
  for (let offset = 0; offset < file.size; offset += PART_LEN) {
    const part = new Uint8Array(await file.slice(offset, offset + PART_LEN).arrayBuffer());
    bytes(at + name.length + offset, part.length).set(part);
  }
  nameLen = name.length;
}

onmessage = async ({ data }) => {
  try {
    if (data.save) {
      const isDone = wasm.salvage(nameLen);
      postMessage(isDone ? { saved: answer().slice() } : { failed: new TextDecoder().decode(answer()) });
      return;
    }
    await start(data.packed);
    if (!data.file) wasm.sample();
    await load(data.file ?? new File([answer().slice()], "sample.log"));
    const started = performance.now();
    const isLog = !!wasm.look(nameLen);
    const text = new TextDecoder().decode(answer());
    postMessage({ isLog, text, took: performance.now() - started });
  } catch (error) {
    const isOurs = error instanceof WebAssembly.RuntimeError;
    postMessage({ failed: isOurs ? `the module stopped, which is a fault of ours: ${error.message}` : error.message });
  }
};
