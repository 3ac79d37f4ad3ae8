#!/usr/bin/env node
// unique-ids in JavaScript: who gave the ID out, since when, and the how manieth it is.
// The start is part of an ID, so that a node which is killed and started again does not repeat itself.
const lines = require("readline").createInterface({ input: process.stdin });
const started = `${Date.now()}-${process.pid}`;
let id;
let count = 0;

function answer(body) {
  switch (body.type) {
    case "init":
      id = body.node_id;
      return { type: "init_ok" };
    case "generate":
      return { type: "generate_ok", id: `${id}-${started}-${count++}` };
    default:
      return { type: "error", code: 10, text: `this node does not know messages of type ${body.type}` };
  }
}

lines.on("line", (line) => {
  const { src, body } = JSON.parse(line);
  const reply = { ...answer(body), in_reply_to: body.msg_id }; // before `id` is read: init tells it
  process.stdout.write(JSON.stringify({ src: id, dest: src, body: reply }) + "\n");
});
