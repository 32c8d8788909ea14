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

// What is wider than its place is marked, so that nobody misses a column for not knowing that there is one.
function markWide() {
  for (const box of document.querySelectorAll(".bd-article .pst-scrollable-table-container, .bd-article figure:has(img.dense)")) {
    box.classList.toggle("wide", box.scrollWidth > box.clientWidth + 4);
  }
}
addEventListener("load", markWide);
addEventListener("resize", markWide);
