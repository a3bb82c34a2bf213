/* Sort a table by the column whose head is pressed; numbers fall first, what is missing comes last. */
"use strict";
for (const table of document.querySelectorAll("table.board")) {
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
  const key = (row, column) => {
    const { value } = row.cells[column].dataset;
    return value === undefined ? row.cells[column].textContent.trim().toLowerCase() : value === "" ? null : Number(value);
  };
  heads.forEach((head, column) => {
    const button = head.querySelector("button");
    if (!button) return;
    button.addEventListener("click", () => {
      const falling = head.getAttribute("aria-sort") === "descending"
        ? false
        : head.getAttribute("aria-sort") === "ascending" || head.classList.contains("figure");
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", falling ? "descending" : "ascending");
      const order = (a, b) => (typeof a === "string" ? a.localeCompare(b) : a - b);
      const rows = [...body.rows].map((row) => ({ row, value: key(row, column) }));
      rows.sort((a, b) => {
        if (a.value === null || b.value === null) return (a.value === null) - (b.value === null);
        return falling ? order(b.value, a.value) : order(a.value, b.value);
      });
      body.append(...rows.map(({ row }) => row));
    });
  });
}
