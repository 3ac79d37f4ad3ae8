// A node for Maelstrom in a few lines, after maelstrom_node.py: nothing but Node.js.
//
//   const { Node } = require("./maelstrom_node");
//   const node = new Node();
//   node.on("echo", (request) => node.reply(request, { type: "echo_ok", echo: request.body.echo }));
//   node.run();
//
// In a simulator, which sets NODE_SEED, clocks, timers and random numbers come from the seed. The simulator gives
// one line, with the time, and waits until the node says that it is quiet.
"use strict";
const crypto = require("crypto");
const { createInterface } = require("readline");
const simulated = process.env.NODE_SEED !== undefined;

class Node {
  constructor() {
    this.id = null; // until init has come, as `ids`
    this.ids = [];
    this.handlers = { init: (request) => this.init(request) };
    this.waiting = new Map();
    this.sent = 0;
  }

  // Take a type of request.
  on(kind, handler) {
    this.handlers[kind] = handler;
  }

  // Call a function every so many milliseconds.
  every(ms, act) {
    setInterval(act, ms);
  }

  // Send a message that nobody answers.
  send(dest, body) {
    process.stdout.write(JSON.stringify({ src: this.id, dest, body }) + "\n");
  }

  // Answer a request.
  reply(request, body) {
    this.send(request.src, { ...body, in_reply_to: request.body.msg_id });
  }

  // Send a request; `then` gets the body of the reply, whenever it comes.
  call(dest, body, then) {
    this.waiting.set(++this.sent, then);
    this.send(dest, { ...body, msg_id: this.sent });
  }

  // Serve until stdin ends.
  run() {
    if (simulated) quiet();
    const lines = createInterface({ input: process.stdin });
    lines.on("line", (line) => {
      const message = JSON.parse(line);
      if (simulated) now = message.now_ns;
      if (message.body) this.receive(message);
      if (simulated) {
        ring();
        setImmediate(quiet); // after all promises
      }
    });
    lines.on("close", () => process.exit());
  }

  receive(message) {
    const { type, in_reply_to } = message.body;
    if (this.id === null && type !== "init") return; // for a former life of this node
    if (in_reply_to !== undefined) {
      const then = this.waiting.get(in_reply_to);
      this.waiting.delete(in_reply_to);
      if (then) then(message.body);
    } else if (this.handlers[type]) {
      this.handlers[type](message);
    } else {
      this.reply(message, { type: "error", code: 10, text: `this node does not know messages of type ${type}` });
    }
  }

  init(request) {
    this.id = request.body.node_id;
    this.ids = request.body.node_ids;
    this.reply(request, { type: "init_ok" });
  }

  // All nodes but this one.
  get others() {
    return this.ids.filter((each) => each !== this.id);
  }
}

// Of a simulated node: the time in ns, and timers by number.
let now = Number(process.env.NODE_NOW_NS);
let state = Number(process.env.NODE_SEED);
let made = 0;
const timers = new Map();

function next() {
  return [...timers.values()].reduce((first, each) => (first && first.due <= each.due ? first : each), undefined);
}

function ring() {
  for (let timer = next(); timer && timer.due <= now; timer = next()) {
    if (timer.again) timer.due = now + timer.ns;
    else timers.delete(timer.number);
    timer.act();
  }
}

function quiet() {
  process.stdout.write(JSON.stringify({ type: "quiet", timer_ns: next()?.due }) + "\n");
}

function start(again) {
  return (act, ms, ...args) => {
    const ns = Math.max(1, ms || 0) * 1e6;
    const timer = { number: ++made, act: () => act(...args), again, ns: Math.round(ns) };
    timers.set(timer.number, { ...timer, due: now + timer.ns });
    return timer.number;
  };
}

// mulberry32
function random() {
  state = (state + 0x6d2b79f5) | 0;
  let t = Math.imul(state ^ (state >>> 15), 1 | state);
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
  return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
}

if (simulated) {
  const ms = () => 1.7e12 + now / 1e6;
  globalThis.Date = class extends Date {
    constructor(...args) {
      super(...(args.length ? args : [ms()]));
    }
    static now() {
      return Math.floor(ms());
    }
  };
  performance.now = () => now / 1e6;
  Math.random = random;
  crypto.randomBytes = (size) => Buffer.from(Array.from({ length: size }, () => random() * 256));
  crypto.randomUUID = () => crypto.randomBytes(16).toString("hex").replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
  globalThis.setTimeout = start(false);
  globalThis.setInterval = start(true);
  globalThis.clearTimeout = globalThis.clearInterval = (number) => timers.delete(number);
}

module.exports = { Node };
