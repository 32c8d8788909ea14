"use strict";
// The pole of the home page, held by a tree: the explorer's physics, tree and drawing.  Readers who ask for less motion
// see it standing still until they press play.

(() => {
  const box = document.getElementById("spaql-hero");
  if (!box) return;
  const policy = JSON.parse(box.dataset.policy);
  const { system } = policy;
  const { seconds, push } = SPAQL_SYSTEMS[system.family];
  const canvas = box.querySelector("canvas");
  const rules = leafRules();
  const button = box.querySelector("[data-play]");
  const start = () => [0, 0, 0.04 * (Math.random() < 0.5 ? -1 : 1), 0];
  let state = start();
  let playing = !matchMedia("(prefers-reduced-motion: reduce)").matches;
  let rest = 0; // frames to wait after a fall
  let last = 0;

  // One line per leaf, in the order of its actions: the questions on the way to it, and what it does.
  function leafRules() {
    const texts = [];
    const walk = (node, asked) => {
      const feature = policy.feature[node];
      const row = policy.left[node];
      if (feature < 0) {
        texts[row] = `${asked.join(" and ")}: push ${system.choices[policy.action[row]] > 0 ? "right" : "left"}`;
        return;
      }
      const threshold = `${String(Number(policy.threshold[node].toPrecision(2))).replace("-", "−")} ${system.units[feature]}`;
      walk(row, [...asked, `${system.observed[feature]} < ${threshold}`]);
      walk(policy.right[node], [...asked, `${system.observed[feature]} ≥ ${threshold}`]);
    };
    walk(0, []);
    const list = box.querySelector("ul");
    return texts.map((text) => list.appendChild(Object.assign(document.createElement("li"), { textContent: text })));
  }

  function advance() {
    const row = spaqlExplorer.find(policy, spaqlExplorer.observe(system, state));
    const action = policy.action[row];
    rules.forEach((rule, i) => rule.classList.toggle("now", i === row));
    spaqlExplorer.parts.drawScene(canvas, box, system, state, system.choices[action]);
    const next = spaqlExplorer.step(system, state, action);
    state = next.state;
    if (next.over) rest = 40;
  }

  function frame(now) {
    if (!playing) return;
    if (now - last >= 1000 * seconds(system.constants)) {
      last = now;
      if (rest > 0) {
        rest -= 1;
        if (rest === 0) state = start();
      } else advance();
    }
    requestAnimationFrame(frame);
  }

  function play(on) {
    playing = on;
    button.textContent = on ? "pause" : "play";
    if (on) requestAnimationFrame(frame);
  }

  button.addEventListener("click", () => play(!playing));
  for (const pushing of box.querySelectorAll("[data-push]")) {
    pushing.addEventListener("click", () => {
      state = push(state, Number(pushing.dataset.push));
      if (!playing) for (let step = 0; step < 10; step += 1) advance(); // a fifth of a second, so that it shows
    });
  }
  advance();
  play(playing);
})();
