// The page of the explorer: a graph of states, a way through it, and what the state at its end shows.
"use strict";

const told = JSON.parse(document.querySelector("#document").textContent);
const by = id => document.querySelector(`#${id}`);
const ROW = 44, TOP = 26; // of the list of steps, and of the picture beside it
let book, chosen, at; // `chosen`: places of the edges taken, some perhaps behind `at`; `way`: their states
let way;

// ------------------------------------------------------------ the graph

function edgesOf(state) {
  const flat = book.edges[state] ?? [];
  const found = [];
  for (let i = 0; i < flat.length; i += 3) {
    const [sentence, detail, fault] = told.happenings[flat[i]];
    found.push({ sentence, detail, fault, target: flat[i + 1], signals: told.signals[flat[i + 2]] });
  }
  return found;
}
const verdictsOf = state => told.verdicts[book.states[state].at(-2)];
const isBroken = state => verdictsOf(state).some(([, holds]) => !holds);
const isStory = each => each.edges.every(edges => (edges ?? []).length <= 3);
const fails = each => each.states.some(state => told.verdicts[state.at(-2)].some(([, holds]) => !holds));
const isEnd = state => book.states[state].at(-1) === 1;
const panesOf = state => book.panes.map((name, i) => told.paneTable[book.states[state][i]].map(card => told.cards[card]));

function nearestFailure(start) { // places of edges, breadth first; null when there is none
  const came = new Map([[start, null]]);
  for (const state of came.keys()) { // a map goes on to what is added meanwhile
    if (state !== start && isBroken(state)) {
      const places = [];
      for (let step = came.get(state); step; step = came.get(step.from)) places.unshift(step.place);
      return places;
    }
    edgesOf(state).forEach((edge, place) => {
      if (!came.has(edge.target)) came.set(edge.target, { from: state, place });
    });
  }
  return null;
}

// ------------------------------------------------------------ the way

function walk(edges) { // the states along places of edges, as far as there are any
  way = [0];
  chosen = [];
  for (const place of edges) {
    const edge = edgesOf(way.at(-1))[place];
    if (!edge) break;
    chosen.push(place);
    way.push(edge.target);
  }
}
function open(number, edges = [], step = 0) {
  book = told.books[number] ?? told.books[0];
  by("book").value = told.books.indexOf(book);
  const linear = isStory(book);
  walk(linear ? book.states.map(() => 0) : edges);
  at = Math.min(step, chosen.length);
  by("about").textContent = book.about;
  by("covered").replaceChildren(`${book.covered} `, ...(book.command ? [make("code", book.command)] : []));
  by("choose").textContent = linear ? "What happens next" : "What may happen next";
  by("failure").hidden = !fails(book);
  show();
}
function take(place) {
  if (chosen[at] !== place) walk([...chosen.slice(0, at), place]);
  go(at + 1);
}
function go(step) {
  at = Math.max(0, Math.min(step, chosen.length));
  show();
}
function next() {
  if (at < chosen.length) go(at + 1);
  else if (edgesOf(way[at]).length) take(0);
}
function toFailure() {
  const places = nearestFailure(way[at]);
  if (!places) return;
  walk([...chosen.slice(0, at), ...places]);
  go(chosen.length);
}

// ------------------------------------------------------------ what is shown

function make(tag, text = "", name = "") {
  const made = document.createElement(tag);
  made.textContent = text;
  if (name) made.className = name;
  return made;
}
function show() {
  const state = way[at], edges = edgesOf(state);
  const failure = by("failure").hidden ? null : nearestFailure(state);
  by("where").textContent = `step ${at} of ${chosen.length}` + (isBroken(state) ? " · a law is broken" : isEnd(state) ? " · an end" : "");
  by("start").disabled = by("back").disabled = at === 0;
  by("next").disabled = at === chosen.length && !edges.length;
  by("failure").disabled = failure === null;
  by("failure").textContent = failure ? `To the nearest failure (${failure.length} ${failure.length > 1 ? "steps" : "step"})`
    : isBroken(state) ? "This is a failure" : "No failure ahead";
  by("said").textContent = at ? sentence(edgesOf(way[at - 1])[chosen[at - 1]].sentence) : "The beginning.";
  by("events").replaceChildren(...events(state, edges));
  by("broken").replaceChildren(...verdictsOf(state).filter(([, holds]) => !holds).map(verdict));
  if (isBroken(state) && isEnd(state)) by("broken").append(make("li", "Nothing failed on the way: this was seen when the end was judged.", "quiet"));
  const kept = verdictsOf(state).filter(([, holds]) => holds);
  by("laws").replaceChildren(...kept.map(verdict));
  by("kept").parentElement.hidden = !kept.length;
  by("kept").textContent = `✓ ${kept.length} ${kept.length === 1 ? "law holds" : "laws hold"} here`;
  const before = at ? panesOf(way[at - 1]) : null;
  by("panes").replaceChildren(...panesOf(state).map((cards, i) => pane(book.panes[i], cards, before?.[i])));
  showWay();
  remember();
}
function sentence(text) { // a name at its beginning stays as it is
  const whole = /[.!?]$/.test(text) ? text : `${text}.`;
  return /^[a-z]+ (?!→)/.test(whole) ? whole.charAt(0).toUpperCase() + whole.slice(1) : whole;
}
function events(state, edges) {
  if (!edges.length) {
    const why = book.edges[state] === null ? "The search was cut here: what follows is not on this page."
      : isBroken(state) ? "A law is broken: nothing more is asked." : "Nothing more happens: this is an end.";
    return [make("li", why, "quiet")];
  }
  return edges.map((edge, place) => {
    const item = make("li", "", isBroken(edge.target) ? "broken" : edge.fault ? "fault" : "");
    const button = make("button", sentence(edge.sentence));
    if (place < 9) button.dataset.key = place + 1;
    if (edge.detail) button.append(make("small", edge.detail));
    if (edge.fault) button.append(make("small", "a fault"));
    if (place === chosen[at] && edges.length > 1) button.append(make("small", "taken before", "known"));
    button.addEventListener("click", () => take(place));
    item.append(button);
    return item;
  });
}
function verdict([law, holds, text]) {
  const item = make("li", "", holds ? "good" : "bad");
  item.append(make("b", `${holds ? "✓" : "✗"} ${law}`), " ", make("span", text));
  return item;
}
function pane(name, cards, before) {
  const made = make("div", "", cards.length > 2 ? "pane wide" : "pane"), list = make("div", "", "cards-of");
  made.append(make("h3", name));
  const left = [...(before ?? [])];
  for (const [title, facts] of cards) {
    const place = left.findIndex(([its]) => its === title);
    const [old] = place >= 0 ? left.splice(place, 1) : [undefined];
    list.append(card(title, facts, before && !old, old?.[1]));
  }
  if (before) for (const [title] of left) list.append(gone(title));
  if (!list.children.length) list.append(make("span", "nothing", "quiet"));
  made.append(list);
  return made;
}
function card(title, facts, isNew, old) {
  const made = make("div", "", isNew ? "card new" : "card");
  made.append(make("b", title));
  const known = new Set((old ?? []).map(fact => fact.join("\n")));
  for (const [name, value] of facts) {
    const changed = isNew || (old && !known.has(`${name}\n${value}`));
    const row = make("div", "", `${changed ? "new" : ""} ${name ? "" : "bare"}`.trim());
    if (name) row.append(make("i", name));
    row.append(make("span", value));
    made.append(row);
  }
  return made;
}
function gone(title) {
  const made = make("div", "", "card");
  made.append(make("s", title), make("small", "no longer there"));
  return made;
}

// ------------------------------------------------------------ the way, as a list and as a picture

function showWay() {
  const steps = chosen.map((place, i) => edgesOf(way[i])[place]);
  const items = [make("li"), ...steps.map(() => make("li"))];
  items.forEach((item, i) => {
    const button = make("button");
    button.append(make("i", i), make("span", i ? sentence(steps[i - 1].sentence) : "The beginning."));
    button.addEventListener("click", () => go(i));
    item.append(button);
    item.classList.toggle("now", i === at);
    item.classList.toggle("later", i > at);
    item.classList.toggle("broken", isBroken(way[i]));
    if (i === at) button.setAttribute("aria-current", "step");
  });
  by("path").replaceChildren(...items);
  by("lanes").replaceChildren(...picture(steps));
}
function svg(tag, attributes, text = "") {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.textContent = text;
  return made;
}
function partsOf(signal) { // "+n0>n1 share 7"
  const [ends, label] = signal.slice(1).split(" ");
  return [...ends.split(">"), label.replaceAll("_", " ")];
}
function cross(x, y, later) {
  return svg("path", { class: `lost${later}`, d: "M-5,-5 L5,5 M-5,5 L5,-5", transform: `translate(${x} ${y})` });
}
function picture(steps) {
  const names = new Set(steps.flatMap(step => step.signals.flatMap(signal => partsOf(signal).slice(0, 2))));
  if (!names.size) return [];
  const rank = name => /^(c\d|p\d|consumer|compactor)/.test(name) ? 0 : /^(lin-kv|bucket|store|metadata|index|wal)/.test(name) ? 2 : 1;
  const lanes = [...names].sort((a, b) => rank(a) - rank(b) || a.localeCompare(b, "en", { numeric: true }));
  const gap = Math.max(58, Math.min(96, 560 / lanes.length));
  const x = name => gap / 2 + lanes.indexOf(name) * gap, width = gap * lanes.length, height = TOP + ROW * (steps.length + 1);
  const drawn = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "the messages of this way" });
  drawn.style.width = `${width}px`;
  drawn.append(svg("rect", { class: "at", x: 0, y: at * ROW, width, height: ROW }));
  for (const name of lanes) {
    drawn.append(svg("line", { class: "life", x1: x(name), x2: x(name), y1: TOP, y2: height }));
    drawn.append(svg("text", { class: "name", x: x(name), y: 14, "text-anchor": "middle" }, name));
  }
  const sent = new Map();
  steps.forEach((step, i) => step.signals.forEach((signal, place) => {
    const y = (i + 1) * ROW + ROW * (place + 0.5) / step.signals.length, name = signal.slice(1);
    if (signal[0] === "+") return sent.set(name, { y, step: i + 1 });
    if (signal[0] === "!") return drawn.append(cross(x(partsOf(signal)[0]), y, i + 1 > at ? " later" : ""));
    const from = sent.get(name) ?? { y: TOP, step: 0 }; // or it was on its way from the beginning
    sent.delete(name);
    const kind = signal[0] === "x" ? "lost" : from.step <= at && i + 1 > at ? "open" : "";
    drawn.append(...arrow(signal, from, y, kind, from.step > at ? " later" : ""));
  }));
  for (const [name, from] of sent) drawn.append(...arrow(`+${name}`, from, height - 6, "open", from.step > at ? " later" : ""));
  return [drawn];

  function arrow(signal, from, y, kind, later) {
    const [src, dest, label] = partsOf(signal);
    const share = kind === "lost" ? 0.6 : 1, [x1, x2] = [x(src), x(dest)];
    const endX = x1 + (x2 - x1) * share, endY = from.y + (y - from.y) * share;
    const parts = [svg("line", { class: kind + later, x1, y1: from.y, x2: endX, y2: endY })];
    const angle = Math.atan2(endY - from.y, endX - x1) * 180 / Math.PI;
    if (kind === "") parts.push(svg("path", { class: `head${later}`, d: "M0,0 L-7,-3.5 L-7,3.5 Z", transform: `translate(${x2} ${y}) rotate(${angle})` }));
    if (kind === "lost") parts.push(cross(endX, endY, later));
    const [labelX, labelY] = [x1 + (endX - x1) * 0.3, from.y + (endY - from.y) * 0.3 - 2];
    parts.push(svg("text", { class: `label${later}`, x: labelX, y: labelY, "text-anchor": "middle" }, label));
    return parts;
  }
}

// ------------------------------------------------------------ the address, and the controls

function remember() { // a reload, or a copied address, leads back here
  const address = `#${told.books.indexOf(book)}/${at}/${chosen.join(".")}`;
  if (location.hash !== address) history.replaceState(null, "", address);
}
function fromAddress() { // without one it is a story that fails: what the page is for
  if (!location.hash) return open(Math.max(0, told.books.findIndex(each => isStory(each) && fails(each))));
  const [number, step, edges] = location.hash.slice(1).split("/");
  open(Number(number) || 0, (edges ?? "").split(".").filter(Boolean).map(Number), Number(step) || 0);
}
for (const group of new Set(told.books.map(each => each.group))) {
  const made = make("optgroup");
  made.label = group;
  told.books.forEach((each, number) => {
    if (each.group !== group) return;
    const option = make("option", each.title);
    option.value = number;
    made.append(option);
  });
  by("book").append(made);
}
by("book").addEventListener("change", () => open(Number(by("book").value)));
by("start").addEventListener("click", () => go(0));
by("back").addEventListener("click", () => go(at - 1));
by("next").addEventListener("click", next);
by("failure").addEventListener("click", toFailure);
addEventListener("hashchange", fromAddress);
addEventListener("keydown", event => {
  if (event.target.matches("select, input")) return;
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  if (event.key === "ArrowRight") next();
  else if (event.key === "ArrowLeft") go(at - 1);
  else if (/^[1-9]$/.test(event.key) && event.key <= edgesOf(way[at]).length) take(event.key - 1);
});
fromAddress();
