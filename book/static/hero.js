"use strict";
// The pole of the home page, held by a tree: the physics are the explorer's (systems/cartpole.js), the tree stands in the
// page.  Readers who ask for less motion see it standing still until they press play.

(() => {
  const box = document.getElementById("spaql-hero");
  if (!box) return;
  const policy = JSON.parse(box.dataset.policy);
  const system = policy.system;
  const cartpole = globalThis.SPAQL_SYSTEMS[system.family];
  const canvas = box.querySelector("canvas");
  const context = canvas.getContext("2d");
  const rules = [...box.querySelectorAll("li")];
  const button = box.querySelector("[data-play]");
  const start = () => [0, 0, 0.04 * (Math.random() < 0.5 ? -1 : 1), 0];
  let state = start();
  let playing = !matchMedia("(prefers-reduced-motion: reduce)").matches;
  let rest = 0; // frames to wait after a fall
  let last = 0;

  function leafOf(observation) {
    let node = 0;
    while (policy.feature[node] >= 0) {
      const below = observation[policy.feature[node]] < policy.threshold[node];
      node = below ? policy.left[node] : policy.right[node];
    }
    return policy.left[node];
  }

  function draw(force) {
    const ink = getComputedStyle(box).color;
    const mark = getComputedStyle(box).getPropertyValue("--hero-pole").trim() || "#d08000";
    const { width, height } = canvas;
    context.clearRect(0, 0, width, height);
    context.strokeStyle = context.fillStyle = ink;
    const line = (x, y, toX, toY, thickness) => {
      context.lineWidth = thickness;
      context.lineCap = "round";
      context.beginPath();
      context.moveTo(x, y);
      context.lineTo(toX, toY);
      context.stroke();
    };
    const arrow = (x, y, way) => {
      line(x + 40 * way, y, x + 78 * way, y, 4);
      line(x + 78 * way, y, x + 66 * way, y - 8, 4);
      line(x + 78 * way, y, x + 66 * way, y + 8, 4);
    };
    cartpole.draw({ context, width, height, ink, mark, line, arrow }, system, state, force);
  }

  function advance() {
    const row = leafOf(cartpole.observe(state));
    const action = policy.action[row];
    rules.forEach((rule, i) => rule.classList.toggle("now", i === row));
    draw(system.choices[action]);
    const next = cartpole.step(system.constants, state, action);
    state = next.state;
    if (next.over) rest = 40;
  }

  function frame(now) {
    if (!playing) return;
    if (now - last >= 1000 * cartpole.seconds(system.constants)) {
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
  for (const push of box.querySelectorAll("[data-push]")) {
    push.addEventListener("click", () => {
      state[3] += 0.5 * Number(push.dataset.push);
      if (!playing) for (let step = 0; step < 10; step += 1) advance(); // a fifth of a second, so that it shows
    });
  }
  advance();
  play(playing);
})();
