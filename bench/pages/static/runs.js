// Without this the page works too: filters have a button, and the server checks the choice of two runs.
"use strict";

const filters = document.querySelector("form.filters");
filters?.addEventListener("change", event => event.target.matches("select") && filters.requestSubmit());

const compare = document.querySelector("#compare");
const boxes = [...document.querySelectorAll("input[name=run]")];
function choose() {
  const chosen = boxes.filter(box => box.checked).length;
  compare.disabled = chosen !== 2;
  boxes.forEach(box => { box.disabled = chosen === 2 && !box.checked; });
}
if (compare) {
  boxes.forEach(box => box.addEventListener("change", choose));
  choose();
}

for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  const key = (row, column) => row.cells[column].dataset.sort ?? row.cells[column].textContent.trim();
  heads.forEach((head, column) => head.querySelector("button")?.addEventListener("click", () => {
    const descending = head.getAttribute("aria-sort") === "ascending";
    heads.forEach(each => each.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", descending ? "descending" : "ascending");
    const rows = [...table.tBodies[0].rows];
    const numeric = head.dataset.kind === "number";
    rows.sort((a, b) => {
      const [x, y] = [key(a, column), key(b, column)];
      if (x === "" || y === "") return (x === "") - (y === ""); // what is unknown comes last, either way
      const wrong = numeric && ("wrong" in a.dataset) - ("wrong" in b.dataset);
      if (wrong) return wrong; // what a wrong program saved, it may have saved by being wrong
      const order = numeric ? x - y : x.localeCompare(y);
      return descending ? -order : order;
    });
    table.tBodies[0].append(...rows);
  }));
}
