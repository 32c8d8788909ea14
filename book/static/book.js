"use strict";
// Buttons that the theme's scripts add with a picture alone get a name for those who do not see it.
addEventListener("load", () => {
  for (const button of document.querySelectorAll("button.copybtn")) {
    button.setAttribute("aria-label", button.dataset.tooltip || "Copy");
  }
});

// The theme's side bar is no landmark, and roles of the references are ones that browsers no longer know.
addEventListener("DOMContentLoaded", () => {
  const pages = document.querySelector(".bd-sidebar-primary");
  pages?.setAttribute("role", "navigation");
  pages?.setAttribute("aria-label", "The book");
  for (const entry of document.querySelectorAll(".citation-list, .citation")) entry.removeAttribute("role");
});

// What is wider than its place is marked, so that nobody misses a column for not knowing that there is one.  What is
// not needs no box of its own that scrolls, and then the head of a long table can stay in sight.
function markWide() {
  for (const box of document.querySelectorAll(".bd-article .pst-scrollable-table-container, .bd-article figure:has(img.dense)")) {
    const wide = box.scrollWidth > box.clientWidth + 4;
    box.classList.toggle("wide", wide);
    for (const around of [box, box.closest(".cell_output"), box.closest("details")]) around?.classList.toggle("fits", !wide);
  }
}

// A rule stands where rows begin that are about something else: by their first cells, or by all but its last words.
function markGroups() {
  for (const table of document.querySelectorAll(".bd-article table.numbers")) {
    const rows = [...(table.tBodies[0]?.rows || [])];
    const texts = rows.map((row) => row.cells[0].textContent.trim());
    const shorter = texts.map((text) => text.replace(/, [^,]*$/, ""));
    const groups = [texts, shorter].find((found) => new Set(found).size <= found.length / 2) || [];
    rows.forEach((row, place) => row.classList.toggle("begins", place > 0 && groups[place] !== groups[place - 1]));
  }
}

// The columns at the left that name a row stay in sight together, as far as they leave room for the others: those of
// words, and of the numbers N and thresholds.  They overlap a little, lest what passes below them shows between them.
function keepNames() {
  for (const table of document.querySelectorAll(".bd-article table.table:not(.filtered)")) {
    const room = 0.65 * (table.closest(".pst-scrollable-table-container") || table).clientWidth;
    const names = (head) => head.matches(".text-left") || ["N", "threshold"].includes(head.textContent.trim());
    const widths = [...(table.tHead?.rows[0].cells || [])].map((head) => (names(head) ? head.offsetWidth : room));
    let left = 0, last = 0;
    for (const [column, width] of widths.entries()) {
      const kept = column === 0 || (left + width <= room && table.matches(".numbers"));
      for (const row of table.rows) {
        row.cells[column]?.classList.toggle("key", kept);
        row.cells[column]?.style.setProperty("left", kept ? `${left - 4 * column - 2}px` : "");
      }
      left = kept ? left + width : room;
      last = kept ? column : last;
    }
    for (const row of table.rows) [...row.cells].forEach((cell, column) => cell.classList.toggle("edge", column === last));
  }
}

// A formula that is wider than its place is set smaller, so that nothing of it is cut.
function fitFormulas() {
  for (const box of document.querySelectorAll(".bd-article .math")) {
    const formula = box.querySelector("mjx-container");
    box.style.fontSize = "";
    const display = formula?.matches("[display]");  // beside which its number may stand
    const room = display ? formula.clientWidth : box.clientWidth;
    const needed = display ? formula.scrollWidth : formula?.offsetWidth;
    if (room && needed > room) {
      const smaller = Math.max(0.6, (0.96 * room) / needed);
      box.style.fontSize = `${smaller * parseFloat(getComputedStyle(box).fontSize)}px`;
    }
  }
}

for (const fit of [markWide, keepNames]) {
  for (const occasion of ["load", "resize"]) addEventListener(occasion, fit);
  addEventListener("toggle", fit, true);  // of a fold, whose event does not rise
}
addEventListener("load", markGroups);
addEventListener("load", () => window.MathJax?.startup?.promise?.then(fitFormulas));
addEventListener("resize", fitFormulas);
