/* Sort a table by the column whose head is pressed; numbers fall first, what is missing comes last. Rows stay in their
   body: results of different rules are not mixed. */
"use strict";
for (const table of document.querySelectorAll("table.board")) {
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
      for (const body of table.tBodies) {
        const values = [...body.rows].filter((row) => row.cells.length === heads.length); // without the name of the rule
        const rows = values.map((row) => ({ row, value: key(row, column) }));
        rows.sort((a, b) => {
          if (a.value === null || b.value === null) return (a.value === null) - (b.value === null);
          return falling ? order(b.value, a.value) : order(a.value, b.value);
        });
        body.append(...rows.map(({ row }) => row));
      }
    });
  });
}
