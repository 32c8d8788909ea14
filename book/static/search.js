"use strict";
// The search page: sections that have all the words asked for, best first, with what stands around the first of them.
// SPAQL_SECTIONS (sections.js, written when the book is built) has the texts, so nothing is fetched.

const MOST = 40; // results

function rate([, , chapter, title, text], words) {
  const [heading, body] = [`${title} ${chapter}`.toLowerCase(), text.toLowerCase()];
  let score = 0;
  for (const word of words) {
    const times = body.split(word).length - 1;
    if (!times && !heading.includes(word)) return 0;
    const named = title.toLowerCase().includes(word);
    score += Math.log1p(times) + (named ? 5 : 0) + (heading.includes(word) ? 1 : 0);
    if (named && title === chapter) score += 5; // its own chapter comes first
  }
  return score + (words.length > 1 && `${heading} ${body}`.includes(words.join(" ")) ? 5 : 0);
}

// A piece of a text around the first of the words.
function excerpt(text, words) {
  const lower = text.toLowerCase();
  const places = words.map((word) => lower.indexOf(word)).filter((place) => place >= 0);
  const first = Math.max(0, Math.min(...places, text.length) - 80);
  const from = first && text.indexOf(" ", first) + 1;
  const piece = text.slice(from, from + 240);
  const end = from + 240 < text.length ? piece.slice(0, piece.lastIndexOf(" ")) : piece;
  return `${from ? "… " : ""}${end}${end.length < text.length - from ? " …" : ""}`;
}

// Put a text into an element, the words marked.
function mark(element, text, words) {
  const lower = text.toLowerCase();
  let at = 0;
  while (at < text.length) {
    const [next, word] = words.map((w) => [lower.indexOf(w, at), w]).filter(([place]) => place >= 0)
      .sort(([one, a], [other, b]) => one - other || b.length - a.length)[0] ?? [text.length, ""];
    element.append(text.slice(at, next));
    if (word) element.append(Object.assign(document.createElement("mark"), { textContent: text.slice(next, next + word.length) }));
    at = next + word.length;
  }
}

function search(place, query) {
  const words = [...new Set(query.toLowerCase().split(/\s+/).filter(Boolean))];
  place.replaceChildren();
  if (!words.length) return;
  const found = SPAQL_SECTIONS.map((section) => [rate(section, words), section]).filter(([score]) => score > 0)
    .sort(([one], [other]) => other - one);
  const count = document.createElement("p");
  const told = found.length === 1 ? "1 section" : `${found.length} sections`;
  count.textContent = `${told} with “${query}”${found.length > MOST ? `, the best ${MOST} of them` : ""}.`;
  count.setAttribute("role", "status");
  const list = document.createElement("ul");
  for (const [, [page, anchor, chapter, title, text]] of found.slice(0, MOST)) {
    const item = list.appendChild(document.createElement("li"));
    const link = item.appendChild(document.createElement("a"));
    link.href = `${page}#${anchor}`;
    mark(link, title === chapter ? title : `${chapter}: ${title}`, words);
    mark(item.appendChild(document.createElement("p")), excerpt(text, words), words);
  }
  place.append(count, list);
}

{
  const place = document.getElementById("search-results");
  const query = new URLSearchParams(location.search).get("q")?.trim() ?? "";
  if (place) {
    for (const field of document.querySelectorAll("form.bd-search input")) field.value = query;
    search(place, query);
  }
}
