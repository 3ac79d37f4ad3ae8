// A worker of the page `tab.html.j2`: CPython in WebAssembly, which runs the bench's simulator.
"use strict";

let answer;

async function start(base) {
  const { loadPyodide } = await import(`${base}pyodide/pyodide.mjs`);
  // The same hashes as of `./maelstrom simulate`.
  const options = { indexURL: `${base}pyodide/`, env: { PYTHONHASHSEED: "0", HOME: "/bench/node" } };
  const bench = fetch(`${base}bench.zip`).then(response => response.arrayBuffer());
  const python = await loadPyodide(options);
  python.unpackArchive(await bench, "zip", { extractDir: "/bench" });
  python.runPython(`
    import os, sys
    sys.path[:0] = ["/bench/simulation/stand_ins", "/bench"]
    os.chdir("/bench/node")`);
  answer = python.pyimport("simulation.in_tab").answer;
}

onmessage = async ({ data: { base, question } }) => {
  try {
    if (base) await start(base);
    postMessage(question ? JSON.parse(answer(JSON.stringify(question))) : { ready: true });
  } catch (error) {
    postMessage({ error: `Python could not be started: ${error}` });
  }
};
