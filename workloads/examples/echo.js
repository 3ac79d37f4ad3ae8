#!/usr/bin/env node
// echo in JavaScript: one line in, one line out.
const lines = require("readline").createInterface({ input: process.stdin });
let id;

function answer(body) {
  switch (body.type) {
    case "init":
      id = body.node_id;
      return { type: "init_ok" };
    case "echo":
      return { type: "echo_ok", echo: body.echo };
    default:
      return { type: "error", code: 10, text: `this node does not know messages of type ${body.type}` };
  }
}

lines.on("line", (line) => {
  const { src, body } = JSON.parse(line);
  const reply = { ...answer(body), in_reply_to: body.msg_id }; // before `id` is read: init tells it
  process.stdout.write(JSON.stringify({ src: id, dest: src, body: reply }) + "\n");
});
