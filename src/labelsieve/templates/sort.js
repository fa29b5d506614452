"use strict";
// Click a heading to sort by its column. Click again to reverse the order. Missing values stay last.
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
  const body = table.tBodies[0];
  // Numeric cells may contain text after the number: "3 of 8". A missing value has no number.
  const key = (cell) => {
    const text = cell.textContent.trim();
    if (!cell.classList.contains("n")) return text;
    if (text.includes("∞")) return text.startsWith("−") ? -Infinity : Infinity;
    const number = parseFloat(text.replace("−", "-").replace("<", ""));
    return Number.isNaN(number) ? null : number;
  };
  const sort = () => {
    const column = heads.findIndex((head) => head.getAttribute("aria-sort") !== "none");
    if (column < 0) return;
    const turn = heads[column].getAttribute("aria-sort") === "ascending" ? 1 : -1;
    const rows = [...body.rows].map((row) => [key(row.cells[column]), row]);
    rows.sort(([a], [b]) => {
      if (a === null || b === null) return (a === null) - (b === null);
      return turn * (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), undefined, { numeric: true }));
    });
    body.append(...rows.map(([, row]) => row));
  };
  heads.forEach((head) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    head.setAttribute("aria-sort", "none");
    button.addEventListener("click", () => {
      const order = head.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending";
      for (const other of heads) other.setAttribute("aria-sort", "none");
      head.setAttribute("aria-sort", order);
      sort();
    });
  });
  // Scripts that replace the rows keep the order.
  table.addEventListener("refilled", sort);
}
