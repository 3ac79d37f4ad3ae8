// The page of a bench in a browser tab: what stands in its fields goes to a worker, and what comes back is shown.
"use strict";

const by = id => document.querySelector(`#${id}`);
const chapters = JSON.parse(by("document").textContent);
const base = new URL(".", location.href).href;
const LOADING = "Python is loading: 14 MB, which a browser keeps …";
const source = fetch("worker.js").then(response => response.text());
let worker, reply, loaded, busy = false;
let starts = 0;
let given, chosen; // the chapter's text of the node, as long as nobody changes it; its fields

// ------------------------------------------------------------ the worker

function say(text, isBad = false) {
  by("status").textContent = text;
  by("status").className = isBad ? "invalid" : "";
}

async function start() { // what waits for an earlier start waits for ever
  const number = ++starts;
  say(LOADING);
  // Of a blob a worker has the page's own policy: a node cannot reach any other place.
  const address = URL.createObjectURL(new Blob([await source], { type: "text/javascript" }));
  if (number !== starts) return new Promise(() => {});
  worker = new Worker(address, { type: "module" });
  worker.onmessage = ({ data }) => reply(data);
  worker.onerror = event => reply({ error: `The worker broke: ${event.message}` });
  await told({ base });
  if (by("status").textContent === LOADING) say("Ready.");
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

async function doing(work) { // one thing at a time; after `stop` it never ends
  if (busy) return;
  setBusy(true);
  try {
    await loaded;
    await work();
  } catch (error) {
    say(error.message, true);
  }
  setBusy(false);
}

function setBusy(is) {
  busy = is;
  by("main").ariaBusy = is;
  for (const button of document.querySelectorAll("button.act")) button.ariaDisabled = (button.id === "stop") !== is;
}

function stop() {
  if (!busy) return;
  worker?.terminate();
  setBusy(false);
  begin();
}

function begin() {
  loaded = start();
  loaded.catch(error => say(error.message, true));
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
  list.className = "plain seeds";
  by("result").replaceChildren(list);
  say(`0 of ${count} seeds …`);
  for (let seed = 0; seed < count; seed++) {
    const { verdict, why, digest } = await ask("seed", `${seed}`);
    found.push(verdict);
    const wrong = found.filter(each => each !== "valid" && each !== "unknown").length;
    const right = found.filter(each => each === "valid").length;
    say(`${found.length} of ${count} seeds: ${right} right, ${wrong} wrong, ${seed + 1 - right - wrong} unknown.`);
    const item = list.appendChild(document.createElement("li")), button = document.createElement("button");
    button.textContent = `seed ${seed}: ${verdict}`;
    button.className = ["valid", "unknown", "crashed"].includes(verdict) ? verdict : "invalid";
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

function choose() {
  const place = by("chapter").selectedIndex, which = by("passes").checked ? "passes" : "fails";
  if (chosen && by("node").value !== given && !confirm("Replace the node that you have changed?")) {
    [by("chapter").selectedIndex, by(chosen[1]).checked] = [chosen[0], true];
    return;
  }
  chosen = [place, which];
  by("node").value = given = chapters[place].nodes[which];
  [by("flags").value, by("seed").value] = [chapters[place].flags, 0];
  by("result").replaceChildren();
  document.querySelectorAll("#questions > div").forEach((each, i) => { each.hidden = i !== place; });
}

const through = (bytes, stream) => new Response(new Blob([bytes]).stream().pipeThrough(stream));

async function link() {
  const text = JSON.stringify([...["node", "flags", "seed"].map(id => by(id).value), chosen[0]]);
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
    by("chapter").selectedIndex = chapter;
    given = by("node").value;
    choose();
    [by("node").value, by("flags").value, by("seed").value] = [node, flags, seed];
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
setBusy(false);
if (location.protocol === "file:") say("A browser gives this page nothing from a disk: it needs a web server.", true);
else begin();
open();
