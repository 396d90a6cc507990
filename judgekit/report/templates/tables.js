// Tables that sort: a button in each header of a table with one body; the same button again turns the order round.

/** @param {string} text @returns {number | string} what a cell is sorted by */
function cellValue(text) {
  const number = text.replace(/,/g, "").match(/^[^\d.+-]{0,3}(-?\d*\.?\d+)/);
  return number ? parseFloat(number[1]) : text.toLowerCase();
}

function sortable(table) {
  const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.onclick = () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((one) => one.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const rows = [...body.rows].map((row) => [cellValue(row.cells[column].textContent.trim()), row]);
      rows.sort(([a], [b]) => {
        const order = typeof a === typeof b ? (a < b ? -1 : a > b ? 1 : 0) : typeof a === "number" ? -1 : 1;
        return down ? -order : order;
      });
      body.append(...rows.map(([, row]) => row));
    };
  });
}

for (const table of document.querySelectorAll("table")) {
  const plain = table.tHead?.rows.length === 1 && table.tBodies.length === 1 && !table.querySelector("[colspan],[rowspan]");
  if (plain && table.tBodies[0].rows.length > 1 && table.id !== "found") sortable(table);
}
