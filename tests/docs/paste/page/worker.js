// Python with envmedic's diagnosis, in a thread of its own: the page never waits for it, and may end it.
// It is told where the page lies, then gets texts; it answers with its progress and with diagnoses.
"use strict";

const HERE = new URL("./", import.meta.url).href;
const WASM = `${HERE}pyodide.asm.wasm`;
const LIBRARY = `${HERE}python.zip`;
const PREPARE = `
import os, zipimport
packed = zipimport.zipimporter("/lib/python314.zip")
for name in packed.get_data("native.txt").decode().splitlines():
    file = "/lib/python3.14/site-packages/" + name
    os.makedirs(os.path.dirname(file), exist_ok=True)
    with open(file, "wb") as out:
        out.write(packed.get_data("native/" + name))
import pasted
pasted.load(packed.get_data("known.msgpack"))
`;

const say = (kind, rest = {}) => self.postMessage({ kind, ...rest });
const fetchThere = self.fetch.bind(self);

/** What the server has at `url`. */
async function fetched(url, options = {}) {
  const response = await fetchThere(url, options);
  if (!response.ok) throw new Error(`the server has no ${url} (${response.status})`);
  return response;
}

/** The response for a packed file, unpacked while it arrives; `got` is told of each piece. */
async function unpacked(url, digest, type, got) {
  // with its digest, so that no cache answers with that of an older page
  const response = await fetched(`${url}.packed?${digest}`);
  const counted = new TransformStream({
    transform(piece, out) {
      got(piece.byteLength);
      out.enqueue(piece);
    },
  });
  const body = response.body.pipeThrough(counted).pipeThrough(new DecompressionStream("gzip"));
  return new Response(body, { headers: { "Content-Type": type } });
}

async function start() {
  const parts = await (await fetched(`${HERE}parts.json`, { cache: "no-cache" })).json();
  const total = Object.values(parts).reduce((sum, { size }) => sum + size, 0);
  let bytes = 0;
  const got = (count) => {
    bytes += count;
    say("fetching", { bytes, total });
  };
  // what Pyodide asks for by its plain name comes from the packed files
  const ready = new Map([
    [WASM, unpacked(WASM, parts["pyodide.asm.wasm"].digest, "application/wasm", got)],
    [LIBRARY, unpacked(LIBRARY, parts["python.zip"].digest, "application/zip", got)],
  ]);
  self.fetch = async (asked, options) => {
    const url = new URL(asked instanceof Request ? asked.url : asked, HERE).href;
    return ready.has(url) ? ready.get(url) : fetchThere(asked, options);
  };
  // a part that is not there is named here; Pyodide would only end
  const [{ loadPyodide }] = await Promise.all([import(`${HERE}pyodide.mjs`), ...ready.values()]);
  const python = await loadPyodide({ indexURL: HERE, stdLibURL: LIBRARY });
  self.fetch = fetchThere;
  say("playbooks");
  python.runPython(PREPARE);
  const pasted = python.pyimport("pasted");
  say("ready");
  return (name, content) => {
    python.FS.writeFile("/tmp/pasted", new Uint8Array(content));
    return pasted.diagnose(name);
  };
}

const started = start();
started.catch((error) => say("failed", { error: String(error?.message ?? error) }));

self.onmessage = async ({ data: { id, name, content } }) => {
  let diagnose;
  try {
    diagnose = await started;
  } catch {
    return; // told already
  }
  try {
    say("diagnosed", { id, shown: diagnose(name, content) });
  } catch (error) {
    say("failed", { id, error: String(error) });
  }
};
