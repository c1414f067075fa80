// Takes a text, has the worker diagnose it, and shows the answer. A link to a finding carries its playbook and class.
"use strict";

const at = (id) => document.getElementById(id);
const EXAMPLE = `Traceback (most recent call last):
  File "/home/me/train.py", line 3, in <module>
    import torchvision
  File "/home/me/env/lib/python3.11/site-packages/torchvision/__init__.py", line 10, in <module>
    from torchvision import _meta_registrations, datasets, io, models, ops, transforms, utils
  File "/home/me/env/lib/python3.11/site-packages/torchvision/_meta_registrations.py", line 163, in <module>
    @torch.library.register_fake("torchvision::nms")
RuntimeError: operator torchvision::nms does not exist
`;

let worker = null;
let ready = false;
let long = false;
let asked = 0;
const waiting = new Map();

/** An element with text or children; text is never read as markup. */
function make(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children.filter((child) => child !== null));
  return made;
}

/** Pieces of a sentence: what stands between backticks as code. */
function worded(text) {
  const pieces = text.split("`");
  return pieces.length % 2 ? pieces.map((piece, number) => (number % 2 ? make("code", {}, piece) : piece)) : [text];
}

function tell(words, part = null) {
  at("words").textContent = words;
  at("bar").hidden = part === null;
  if (part === "unknown") at("bar").removeAttribute("value");
  else if (part !== null) at("bar").value = part;
}

function tellReading() {
  tell(long ? "Reading the text: of megabytes of errors it takes a minute …" : "Reading the text …", "unknown");
}

function megabytes(bytes) {
  return (bytes / 1e6).toFixed(1);
}

function start() {
  if (worker !== null) return;
  // a worker made of a blob is bound by the page's policy, one from a file would not be
  const address = new URL("worker.js", document.baseURI).href;
  const source = URL.createObjectURL(new Blob([`import ${JSON.stringify(address)};`], { type: "text/javascript" }));
  worker = new Worker(source, { type: "module" });
  worker.onerror = (event) => failed(event.message || "the worker did not start");
  worker.onmessage = ({ data }) => HEARD[data.kind](data);
  tell("Fetching Python for the browser …", 0);
}

/** What to do with each message of the worker. */
const HEARD = {
  fetching({ bytes, total }) {
    if (bytes < total) tell(`Fetching Python and the playbooks: ${megabytes(bytes)} of ${megabytes(total)} MB`, bytes / total);
    else tell("Starting Python …", "unknown");
  },
  playbooks() {
    tell("Reading the playbooks …", "unknown");
  },
  ready() {
    ready = true;
    if (waiting.size) tellReading();
    else tell("Ready.");
  },
  diagnosed({ id, shown }) {
    waiting.get(id)?.answer(JSON.parse(shown));
    waiting.delete(id);
  },
  failed({ id, error }) {
    if (id === undefined) failed(error);
    else {
      waiting.get(id)?.refuse(new Error(`envmedic failed on this text: ${error.trim().split("\n").at(-1)}`));
      waiting.delete(id);
    }
  },
};

function failed(error) {
  stop(`The diagnosis could not be started here: ${error}. On a command line: envmedic diagnose --log-only error.log`);
}

/** Ends the worker and what it is asked, and says why; the next text starts another one. */
function stop(words) {
  worker?.terminate();
  worker = null;
  ready = false;
  for (const { refuse } of waiting.values()) refuse(new Error(words));
  waiting.clear();
  tell(words);
}

/** The answer to a text (a string or an ArrayBuffer); `name` is that of its file, or "-". */
function ask(content, name = "-") {
  start();
  const bytes = typeof content === "string" ? new TextEncoder().encode(content).buffer : content;
  return new Promise((answer, refuse) => {
    asked += 1;
    waiting.set(asked, { answer, refuse });
    worker.postMessage({ id: asked, name, content: bytes }, [bytes]);
  });
}

async function diagnose(content, name = "-") {
  at("stop").hidden = false;
  at("linked").hidden = true;
  long = (content.byteLength ?? content.length) > 1e6;
  if (ready) tellReading();
  try {
    const shown = await ask(content, name);
    show(shown, name);
    tell("");
  } catch (error) {
    tell(error.message);
  }
  at("stop").hidden = waiting.size === 0;
}

function show(shown, name) {
  const log = /^[\w.][\w.+-]*$/.test(name) ? name : "error.log";
  const [best, ...others] = shown.findings;
  history.replaceState(null, "", best?.playbook ? linkTo(best) : location.pathname + location.search);
  at("answer").replaceChildren(make("div", {},
    make("div", { className: "card" },
      make("div", { className: "verdict" },
        make("span", { className: `mark ${shown.tone}`, ariaHidden: "true" }, shown.mark),
        make("h2", {}, ...worded(shown.sentence))),
      shown.reasons.length ? make("ul", { className: "reasons" }, ...shown.reasons.map((told) => make("li", {}, ...worded(told)))) : null,
      best ? finding(best, shown.sentence, true) : null,
      others.length ? make("p", { className: "also" }, shown.diagnosis.verdict === "unknown" ? "Other guesses" : "Also found") : null,
      ...others.map((item) => finding(item, "", false)),
      shown.diagnosis.verdict === "unknown" && !best
        ? make("p", {}, "Should envmedic know this error? ", make("a", { href: "../contributing.html" }, "Send its text"), ".")
        : null),
    shown.diagnosis.verdict === "not-an-env-problem" ? null : make("div", { className: "card" },
      make("h3", {}, "Next, on the machine where it failed"),
      make("p", { className: "small" }, best
        ? "It looks at the environment itself, which confirms or refutes what the text says."
        : "With the environment beside the text it can tell more."),
      command(`envmedic diagnose ${log}`),
      shown.next_command ? make("p", { className: "small" }, "Then the exact steps; nothing is changed yet:") : null,
      shown.next_command ? command(shown.next_command) : null)));
  at("answer").hidden = false;
  document.body.classList.add("answered");
  at("answer").scrollIntoView({ block: "nearest", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
}

function finding(item, told, shared) {
  const links = item.playbook
    ? make("p", {}, make("a", { href: `../faults-by-name/${item.playbook}.html` }, `${item.playbook}: what it is, and what to do about it`))
    : null;
  return make("article", { className: "finding" },
    told.endsWith(item.summary) ? null : make("h3", {}, ...worded(item.summary)),
    make("p", { className: "facts" }, make("code", {}, item.fault), ` · ${item.sureness}`),
    ...item.lines.slice(0, 1).map(quoted),
    item.lines.length > 1
      ? make("details", {}, make("summary", {}, `${item.lines.length - 1} more line${item.lines.length > 2 ? "s" : ""} of the text that show${item.lines.length > 2 ? "" : "s"} it`), ...item.lines.slice(1).map(quoted))
      : null,
    ...item.advice.map((text) => make("p", {}, ...worded(text))),
    item.alternatives.length
      ? make("details", {},
          make("summary", {}, `${item.alternatives.length} other way${item.alternatives.length > 1 ? "s" : ""} to repair it`),
          make("ul", {}, ...item.alternatives.map((text) => make("li", {}, ...worded(text)))))
      : null,
    links,
    shared && item.playbook ? copier("Copy a link to this finding", () => new URL(linkTo(item), location.href).href,
      "It names the fault, and has nothing of your text.") : null);
}

function quoted({ line, before, words, after }) {
  return make("pre", { className: "log" },
    make("span", { className: "line" }, `line ${line}  `), before, words ? make("mark", {}, words) : null, after);
}

function command(text) {
  const row = copier("Copy", () => text);
  row.className = "command";
  row.prepend(make("code", {}, text));
  return row;
}

function copier(label, text, remark = "") {
  const button = make("button", { type: "button", className: "button quiet" }, label);
  button.onclick = async () => {
    try {
      await navigator.clipboard.writeText(text());
      button.textContent = "Copied";
    } catch {
      button.textContent = "Select it and copy by hand";
    }
    setTimeout(() => (button.textContent = label), 2000);
  };
  return make("p", { className: "copier" }, button, remark ? make("span", { className: "small" }, remark) : null);
}

function linkTo({ playbook, fault }) {
  return `#${new URLSearchParams({ playbook, class: fault })}`;
}

/** Shows the finding that the address names, if there is such a playbook. */
async function showLinked() {
  const named = new URLSearchParams(location.hash.slice(1)).get("playbook");
  if (named === null) return false;
  const known = await (await fetch("faults.json")).json();
  if (!Object.hasOwn(known, named)) return false;
  at("linked-title").textContent = known[named].title;
  at("linked-class").textContent = known[named].fault || "not the environment";
  at("linked-playbook").textContent = named;
  at("linked-page").href = known[named].page;
  at("linked").hidden = false;
  at("answer").hidden = true;
  document.body.classList.remove("answered");
  return true;
}

async function take(file) {
  if (!file) return;
  const shownOf = 200_000; // a box with megabytes makes every browser slow
  at("text").value = file.size <= shownOf ? await file.text() : "";
  at("text").placeholder = file.size <= shownOf ? "" : `${file.name}, ${megabytes(file.size)} MB, is read as it is`;
  await diagnose(await file.arrayBuffer(), file.name);
}

at("form").onsubmit = (event) => {
  event.preventDefault();
  diagnose(at("text").value);
};
at("text").onpaste = () => setTimeout(() => diagnose(at("text").value));
at("text").onkeydown = (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) at("form").requestSubmit();
};
at("text").onfocus = start;
at("file").onchange = () => take(at("file").files[0]);
at("example").onclick = () => {
  at("text").value = EXAMPLE;
  diagnose(EXAMPLE);
};
at("stop").onclick = () => stop("Stopped.");
addEventListener("hashchange", showLinked);
let depth = 0;
addEventListener("dragenter", () => document.body.classList.toggle("dragged", ++depth > 0));
addEventListener("dragleave", () => document.body.classList.toggle("dragged", --depth > 0));
addEventListener("dragover", (event) => event.preventDefault());
addEventListener("drop", async (event) => {
  event.preventDefault();
  depth = 0;
  document.body.classList.remove("dragged");
  const [file] = event.dataTransfer.files;
  if (file) return take(file);
  const text = event.dataTransfer.getData("text");
  if (text) {
    at("text").value = text;
    await diagnose(text);
  }
});

if (location.protocol === "file:") {
  tell("Browsers start no program of a page that is a local file. Serve the site instead: python -m http.server -d build/site");
} else {
  // who follows a link to a finding may need no more than that
  showLinked().then((linked) => linked || navigator.connection?.saveData || start());
}
