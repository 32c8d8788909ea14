"use strict";
// Buttons that the theme's scripts add with a picture alone get a name for those who do not see it.
addEventListener("load", () => {
  for (const button of document.querySelectorAll("button.copybtn")) {
    button.setAttribute("aria-label", button.dataset.tooltip || "Copy");
  }
});
