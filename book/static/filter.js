"use strict";
// A line above a long table to choose its rows by a word and by a verdict.  Without this file the table is all there.

function choose(table, word, verdict) {
  let shown = 0;
  for (const row of table.tBodies[0].rows) {
    const marks = [...row.querySelectorAll(".badge")].map((mark) => mark.textContent);
    const fits = row.textContent.toLowerCase().includes(word.toLowerCase()) && (!verdict || marks.includes(verdict));
    row.hidden = !fits;
    shown += fits;
  }
  return shown;
}

function addFilter(table) {
  const verdicts = [...new Set([...table.querySelectorAll("tbody .badge")].map((mark) => mark.textContent))].sort();
  const line = document.createElement("p");
  line.className = "filter";
  const word = Object.assign(document.createElement("input"), { type: "search", placeholder: "a word, as CartPole" });
  word.setAttribute("aria-label", "Show rows with this word");
  const verdict = document.createElement("select");
  verdict.setAttribute("aria-label", "Show rows with this verdict");
  verdict.append(new Option("any verdict", ""), ...verdicts.map((name) => new Option(name, name)));
  const count = document.createElement("output");
  const update = () => {
    count.textContent = `${choose(table, word.value, verdict.value)} of ${table.tBodies[0].rows.length}`;
  };
  word.addEventListener("input", update);
  verdict.addEventListener("change", update);
  line.append(word, " ", verdict, " ", count);
  (table.closest(".pst-scrollable-table-container") || table).before(line);
  update();
}

document.addEventListener("DOMContentLoaded", () => document.querySelectorAll("table.filtered").forEach(addFilter));
