// Where scripts run every report gains tables that sort and filter, and tables as CSV.  A page is
// whole without it.  It writes text only as text, asks no network, and its digest stands in the
// page's policy, so that no other script runs.
"use strict";

const NUMBER = /^[+\-−]?(\d[\d,]*\.?\d*|\.\d+)(e[+\-]?\d+)?\s?%?$/i;
const NOTHING = new Set(["", "–", "nan", "None", "<NA>"]);

function make(name, text = "", values = {}) {
  return Object.assign(document.createElement(name), { textContent: text }, values);
}

// The number that a cell begins with: 1,234; 5.0 %; 1/864; 0.2 to 0.4.  None where it is words.
function numberOf(text) {
  if (/^[+\-−]?inf$/i.test(text)) return /^[-−]/.test(text) ? -Infinity : Infinity;
  const parts = text.split(/ to |\//);
  if (parts.length > 2 || !NUMBER.test(parts[0])) return null;
  if (parts.length === 2 && !NUMBER.test(parts[1]) && !NOTHING.has(parts[1])) return null;
  const [first, second] = parts.map((part) => parseFloat(part.replace(/,/g, "").replace("−", "-")));
  return text.includes("/") ? first / second : first;
}

// Order of two cells of a column, numbers as numbers; what is missing comes last either way.
function compare(a, b, numeric, down) {
  const none = NOTHING.has(a) - NOTHING.has(b);
  if (none || NOTHING.has(a)) return none;
  const order = numeric ? Math.sign(numberOf(a) - numberOf(b)) || 0 : a.localeCompare(b, "en");
  return down ? -order : order;
}

// What a cell is sorted by: the number it was made of, or its text.
const keyOf = (cell) => cell.dataset.sort ?? cell.textContent;
const cellsOf = (row) => Array.from(row.cells, (cell) => cell.textContent);

// A field of CSV (RFC 4180): in quotes where it must be, and no formula but numbers and intervals.
const guarded = (t) => (/^'*[=+\-@\t\r]/.test(t) && !/^([-+0-9.,% ]|to)+$/.test(t) ? `'${t}` : t);
const quoted = (text) => (/[",\r\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text);

// Buttons in the heads: up, down, and as it was.
function sortable(table) {
  const body = table.tBodies[0];
  const rows = Array.from(body.rows);
  const heads = Array.from(table.tHead.rows[0].cells);
  heads.forEach((head, at) => {
    const button = make("button", head.textContent, { type: "button", title: "sort" });
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const now = head.getAttribute("aria-sort");
      const next = now === null ? "ascending" : now === "ascending" ? "descending" : null;
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      let order = rows;
      if (next !== null) {
        const text = new Map(rows.map((row) => [row, keyOf(row.cells[at])]));
        const numeric = rows.every((r) => NOTHING.has(text.get(r)) || numberOf(text.get(r)) !== null);
        const down = next === "descending";
        order = [...rows].sort((a, b) => compare(text.get(a), text.get(b), numeric, down));
        head.setAttribute("aria-sort", next);
      }
      body.append(...order);
    });
  });
}

// A field above a table: rows stay that hold every word of it.
function filterable(table, tools) {
  const rows = Array.from(table.tBodies[0].rows);
  const label = make("label", "Rows with ");
  const field = make("input", "", { type: "search", placeholder: "words" });
  const said = make("span", "");
  said.setAttribute("aria-live", "polite");
  label.append(field);
  tools.append(label, said);
  field.addEventListener("input", () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    let left = 0;
    for (const row of rows) {
      const text = cellsOf(row).join("\n").toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      left += row.hidden ? 0 : 1;
    }
    said.textContent = words.length ? `${left} of ${rows.length}` : "";
  });
}

// The rows that are shown, in the order in which they are shown.
function csvOf(table) {
  const rows = Array.from(table.tBodies[0].rows).filter((row) => !row.hidden);
  const lines = [table.tHead.rows[0], ...rows].map((row) => cellsOf(row).map(guarded).map(quoted).join(","));
  return lines.join("\r\n") + "\r\n";
}

function saved(table, name, tools) {
  const button = make("button", "CSV", { type: "button", title: "save the rows shown as CSV" });
  tools.append(button);
  button.addEventListener("click", () => {
    const href = `data:text/csv;charset=utf-8,${encodeURIComponent(csvOf(table))}`;
    make("a", "", { href, download: `${name}.csv` }).click();
  });
}

document.querySelectorAll("figure.table").forEach((figure, number) => {
  const table = figure.querySelector("table");
  const tools = make("div");
  tools.className = "tools";
  if (table.tBodies[0].rows.length > 1) {
    sortable(table);
    filterable(table, tools);
  }
  const words = figure.querySelector("figcaption").textContent.match(/[A-Za-z0-9]+/g) ?? [];
  saved(table, [`table-${number + 1}`, ...words].join("-").toLowerCase().slice(0, 60), tools);
  figure.querySelector(".wide").before(tools);
});

// Browsers that print a folded part folded: all are opened, and closed again after.
let opened = [];
addEventListener("beforeprint", () => {
  opened = Array.from(document.querySelectorAll("details:not([open])"));
  opened.forEach((part) => (part.open = true));
});
addEventListener("afterprint", () => opened.forEach((part) => (part.open = false)));
