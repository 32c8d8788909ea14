"use strict";
// A line above a long table to choose its rows by a word, and by the verdict in each column that has verdicts.  Each
// body of the table begins with a row that names a part, which is hidden if nothing of the part is left.
// Without this file the table is all there.

function verdictIn(row, column) {
  return row.cells[column]?.querySelector(".badge")?.textContent;
}

function addFilter(table) {
  const rows = [...table.querySelectorAll("tbody tr:has(td)")];
  const line = document.createElement("p");
  line.className = "filter";
  const word = Object.assign(document.createElement("input"), { type: "search", placeholder: "a word, as CartPole" });
  word.setAttribute("aria-label", "Show rows with this word");
  const choices = [];
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const verdicts = [...new Set(rows.map((row) => verdictIn(row, column)).filter(Boolean))].sort();
    if (!verdicts.length) return;
    const choice = document.createElement("select");
    const name = head.textContent.trim();
    choice.setAttribute("aria-label", `Show rows with this verdict, ${name}`);
    choice.append(new Option(`${name}: any`, ""), ...verdicts.map((verdict) => new Option(`${name}: ${verdict}`, verdict)));
    choices.push({ choice, column });
  });
  const count = document.createElement("output");
  const update = () => {
    const wanted = word.value.toLowerCase();
    for (const row of rows) {
      const fits = choices.every(({ choice, column }) => !choice.value || verdictIn(row, column) === choice.value);
      const text = row.parentElement.rows[0].textContent + row.textContent;
      row.hidden = !(fits && text.toLowerCase().includes(wanted));
    }
    for (const part of table.tBodies) part.hidden = [...part.rows].slice(1).every((row) => row.hidden);
    count.textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length}`;
  };
  word.addEventListener("input", update);
  choices.forEach(({ choice }) => choice.addEventListener("change", update));
  line.append(word, ...choices.map(({ choice }) => choice), count);
  (table.closest(".pst-scrollable-table-container") || table).before(line);
  update();
}

document.addEventListener("DOMContentLoaded", () => document.querySelectorAll("table.filtered").forEach(addFilter));
