// The page of a bench in a browser tab: what stands in its fields goes to a worker, and what comes back is shown.
"use strict";

const by = id => document.querySelector(`#${id}`);
const chapters = JSON.parse(by("document").textContent);
const base = new URL(".", location.href).href;
let worker, reply, loaded, busy = false;
let given = ""; // the node as the chapter has it, which nobody has changed

// ------------------------------------------------------------ the worker

function say(text, isBad = false) {
  by("status").textContent = text;
  by("status").className = isBad ? "invalid" : "";
}

async function start() {
  say("Python is loading: 14 MB, which a browser keeps …");
  // Of a blob a worker has the page's own policy: a node cannot reach any other place.
  const source = await (await fetch("worker.js")).blob();
  const address = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  worker = new Worker(address, { type: "module" });
  URL.revokeObjectURL(address);
  worker.onmessage = ({ data }) => reply(data);
  worker.onerror = event => reply({ error: `The worker broke: ${event.message}` });
  await told({ base });
  if (!busy) say("Ready.");
}

function told(message) { // what the worker answers; an error is thrown
  return new Promise((resolve, reject) => {
    reply = data => data.error ? reject(new Error(data.error)) : resolve(data);
    worker.postMessage(message);
  });
}

function ask(what, seed) {
  return told({ question: { ask: what, node: by("node").value, flags: by("flags").value, seed } });
}

async function doing(work) { // one thing at a time; `stop` ends it
  if (busy) return;
  setBusy(true);
  const mine = worker;
  try {
    await loaded;
    await work();
  } catch (error) {
    if (mine === worker || !mine) say(error.message, true);
  } finally {
    if (mine === worker || !mine) setBusy(false);
  }
}

function setBusy(is) {
  busy = is;
  by("main").ariaBusy = is;
  for (const button of document.querySelectorAll("button.act"))
    button.ariaDisabled = (button.id === "stop") !== is;
}

function stop() {
  if (!busy) return;
  worker.terminate();
  worker = null;
  setBusy(false);
  loaded = start();
}

// ------------------------------------------------------------ what the buttons do

async function run() {
  const seed = by("seed").value;
  say(`Seed ${seed} runs …`);
  const { verdict, html } = await ask("run", seed);
  by("result").innerHTML = html;
  say(`Seed ${seed}: ${verdict}.`);
}

async function runSeeds() {
  const count = by("count").valueAsNumber || 1, found = [];
  const list = document.createElement("ul");
  by("result").replaceChildren(list);
  list.className = "plain seeds";
  for (let seed = 0; seed < count; seed++) {
    const { verdict, why, digest } = await ask("seed", `${seed}`);
    found.push(verdict);
    const wrong = found.filter(each => each !== "valid" && each !== "unknown").length;
    const right = found.filter(each => each === "valid").length;
    say(`${found.length} of ${count} seeds: ${right} right, ${wrong} wrong, ${seed + 1 - right - wrong} unknown.`);
    const item = list.appendChild(document.createElement("li")), button = document.createElement("button");
    button.textContent = `seed ${seed}: ${verdict}`;
    button.className = verdict === "valid" ? "valid" : "invalid";
    button.title = why || "right";
    button.dataset.digest = digest;
    button.onclick = () => { if (!busy) { by("seed").value = seed; doing(run); } };
    item.append(button);
  }
}

async function shrink() {
  say("Smaller runs are tried …");
  const { operations, flags, seed } = await ask("shrink", by("seed").value);
  by("flags").value = flags;
  by("seed").value = seed;
  await run();
  say(`The smallest run that was found has ${operations} operation${operations === 1 ? "" : "s"}.`);
}

// ------------------------------------------------------------ chapters and links

function show(node, flags) {
  by("node").value = given = node;
  by("flags").value = flags;
  by("result").replaceChildren();
}

function choose() {
  const chapter = chapters[by("chapter").selectedIndex];
  if (by("node").value !== given && !confirm("Replace the node that you have changed?")) return;
  show(chapter.nodes[by("passes").checked ? 1 : 0], chapter.flags);
  document.querySelectorAll("#questions > div").forEach((each, i) => { each.hidden = i !== by("chapter").selectedIndex; });
}

const through = (bytes, stream) => new Response(new Blob([bytes]).stream().pipeThrough(stream));

async function link() {
  const text = JSON.stringify(["node", "flags", "seed", "chapter"].map(id => by(id).value));
  const packed = new Uint8Array(await through(text, new CompressionStream("deflate-raw")).arrayBuffer());
  const code = btoa(Array.from(packed, byte => String.fromCharCode(byte)).join(""));
  history.replaceState(null, "", `#${code.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")}`);
  const copied = await navigator.clipboard?.writeText(location.href).then(() => true, () => false);
  say(`The address holds node, options and seed${copied ? ", and is copied" : ""}.`);
}

async function open() { // what a link holds; nothing runs before somebody asks for it
  const code = location.hash.slice(1).replaceAll("-", "+").replaceAll("_", "/");
  if (!code) return;
  try {
    const packed = Uint8Array.from(atob(code), character => character.charCodeAt(0));
    const text = await through(packed, new DecompressionStream("deflate-raw")).text();
    const [node, flags, seed, chapter] = JSON.parse(text);
    by("chapter").value = chapter;
    given = by("node").value;
    choose();
    show(node, flags);
    by("seed").value = seed;
  } catch {
    say("This link is damaged: it holds no node.", true);
  }
}

by("chapter").onchange = by("fails").onchange = by("passes").onchange = choose;
by("run").onclick = () => doing(run);
by("seeds").onclick = () => doing(runSeeds);
by("shrink").onclick = () => doing(shrink);
by("stop").onclick = stop;
by("link").onclick = link;
by("node").onkeydown = event => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) doing(run); };
window.onhashchange = open;
choose();
open();
setBusy(false);
if (location.protocol === "file:") say("This page needs a web server: ./maelstrom serve, or python -m http.server.", true);
else loaded = start().catch(error => say(error.message, true));
