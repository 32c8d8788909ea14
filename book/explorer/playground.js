"use strict";
// Agents that learn in the page, side by side.  It needs learning.js, replay.js, the files of systems/, explorer.js for its
// colours, and an element with the id "spaql-playground" and the systems' data.  A link can choose and start:
// #playground?system=CartPole-v0&xi=20&N=20&deleted=1

(() => {
  const place = document.getElementById("spaql-playground");
  if (!place) return;
  const systems = JSON.parse(place.dataset.systems);
  const ALGORITHMS = ["AQL", "SPAQL", "SPAQL-TS", "SPAQL-R"];
  const { STYLE, BORDER, element, choice, fill, number, colour, shadesOf, valueAt } = spaqlExplorer.parts;

  place.replaceChildren();
  place.classList.add("spaql");
  element(place, "style", {}, `${STYLE}
    .spaql .agents { display: grid; grid-template-columns: repeat(4, minmax(0, 1fr)); gap: 0.6rem; }
    .spaql .agents .name { font-weight: 600; margin: 0.4rem 0 0.2rem; }
    .spaql .agents p { font-size: 0.85rem; margin: 0.2rem 0; font-variant-numeric: tabular-nums; min-height: 2.6em; }
    @media (max-width: 600px) { .spaql .agents { grid-template-columns: repeat(2, minmax(0, 1fr)); } }`);
  const top = element(place, "div", { class: "spaql-row" });
  const systemChoice = choice(top, "System");
  const slider = (text, values, first) => {
    const label = element(top, "label");
    const caption = element(label, "span");
    const input = element(label, "input", { type: "range", min: 0, max: values.length - 1, step: 1, value: first });
    const value = () => values[input.value];
    return { input, values, value, show: () => { caption.textContent = `${text} = ${value()}`; } };
  };
  const xi = slider("ξ", [0, 0.1, 0.4, 1, 4, 10, 20, 40, 80, 160], 4);
  const N = slider("N", [1, 5, 10, 20, 50, 100], 1);
  const label = element(top, "label", { class: "check" });
  const deleted = element(label, "input", { type: "checkbox" });
  label.append("delete the rewards");
  const buttons = element(place, "div", { class: "spaql-buttons" });
  const playButton = element(buttons, "button", { type: "button", class: "play" }, "Train");
  const againButton = element(buttons, "button", { type: "button" }, "Start again");
  const room = element(place, "div", { class: "agents" });
  const panels = ALGORITHMS.map((algorithm) => {
    const box = element(room, "div");
    element(box, "div", { class: "name" }, algorithm);
    return {
      algorithm,
      map: element(box, "canvas", { width: 240, height: 180, role: "img" }),
      curve: element(box, "canvas", { width: 240, height: 80, role: "img", style: "margin-top: 0.3rem" }),
      words: element(box, "p"),
    };
  });
  const note = element(place, "p", { class: "help" });
  let playing = false;

  const system = () => systems[systemChoice.value];
  const settings = () => ({ xi: xi.value(), N: N.value(), deleted: deleted.checked });

  function restart() {
    xi.show();
    N.show();
    const begin = () => SPAQL_SYSTEMS[system().family].begin(Math.random);
    for (const panel of panels) {
      panel.agent = panel.algorithm === "SPAQL-R" ? spaqlReplay.newAgent(system(), settings(), Math.random, begin)
        : spaqlLearning.newAgent(system(), panel.algorithm, settings(), Math.random, begin);
      panel.shown = null;
    }
    const [across, up] = system().axes.map((name) => system().state.find((variable) => variable.name === name));
    note.textContent = `The maps show the ${system().action.name} of each agent's best policy so far over ${across.symbol} `
      + `(across) and ${up.symbol} (up)${system().state.length > 2 ? ", the other variables at zero" : ""}; lines are the `
      + "borders of cells. AQL has a partition for each time step: this is the first one. SPAQL-R has no ξ, and its "
      + "rollouts only report. Below: the mean return of the N rollouts after each training episode (dots) and what is "
      + "reported (line).";
    show();
  }

  function paint({ agent, map }) {
    const { state, axes, action: { ends: [low, high] } } = system();
    const [across, up] = axes.map((name) => state.findIndex((variable) => variable.name === name));
    const picture = new ImageData(map.width, map.height);
    const cells = new Array(map.width * map.height);
    const shades = new Map();
    const where = state.map(() => 0);
    for (let j = 0; j < map.height; j += 1) {
      where[up] = valueAt(state[up], 1 - (j + 0.5) / map.height);
      for (let i = 0; i < map.width; i += 1) {
        where[across] = valueAt(state[across], (i + 0.5) / map.width);
        const here = j * map.width + i;
        const cell = cells[here] = agent.locate(where);
        const action = agent.history.length ? agent.central(cell.best) : (low + high) / 2;
        if (!shades.has(cell)) shades.set(cell, colour((action - low) / (high - low), shadesOf(low, high)));
        const border = (i > 0 && cell !== cells[here - 1]) || (j > 0 && cell !== cells[here - map.width]);
        picture.data.set([...(border ? BORDER : shades.get(cell)), 255], 4 * here);
      }
    }
    map.getContext("2d").putImageData(picture, 0, 0);
    map.setAttribute("aria-label", `${agent.algorithm} after ${Math.max(0, agent.iteration)} episodes: ${agent.best.arms} arms`);
  }

  function drawCurve({ agent, curve }) {
    const context = curve.getContext("2d");
    const style = getComputedStyle(place);
    const shown = agent.history;
    context.clearRect(0, 0, curve.width, curve.height);
    curve.setAttribute("aria-label", `Return of ${agent.algorithm} over ${shown.length} episodes`);
    if (!shown.length) return;
    const [lowest, highest] = system().returns;
    const x = (i) => 4 + (i / Math.max(50, shown.length)) * (curve.width - 8);
    const y = (reward) => 4 + (1 - (reward - lowest) / (highest - lowest)) * (curve.height - 8);
    const every = Math.ceil(shown.length / 200);
    context.fillStyle = style.getPropertyValue("--line");
    shown.forEach(({ mean }, i) => { if (i % every === 0) context.fillRect(x(i) - 1, y(mean) - 1, 2, 2); });
    context.strokeStyle = style.getPropertyValue("--mark");
    context.lineWidth = 2;
    context.beginPath();
    shown.forEach(({ reward }, i) => (i ? context.lineTo(x(i), y(reward)) : context.moveTo(x(i), y(reward))));
    context.stroke();
  }

  function show() {
    for (const panel of panels) {
      const { agent } = panel;
      if (panel.shown === agent.iteration) continue;
      panel.shown = agent.iteration;
      paint(panel);
      drawCurve(panel);
      const last = agent.history[agent.history.length - 1];
      panel.words.textContent = last ? `${agent.history.length} episodes, ${agent.best.arms.toLocaleString("en")} arms; `
        + `reported ${number(last.reward, 0)}, last ${number(last.mean, 0)}` : "Not trained yet.";
    }
  }

  // Each agent gets the same time of a frame, and maps are drawn a few times a second.
  let drawn = 0;
  function frame(now) {
    if (!playing) return;
    for (const { agent } of panels) {
      const end = performance.now() + 9;
      do agent.advance(); while (performance.now() < end);
    }
    if (now - drawn > 250) {
      drawn = now;
      show();
    }
    requestAnimationFrame(frame);
  }

  function play(on) {
    playing = on;
    playButton.textContent = on ? "Pause" : "Train";
    if (on) requestAnimationFrame(frame);
    else show();
  }

  playButton.addEventListener("click", () => play(!playing));
  againButton.addEventListener("click", restart);
  for (const input of [systemChoice, xi.input, N.input, deleted]) input.addEventListener("input", restart);
  fill(systemChoice, Object.entries(systems).map(([id, { title }]) => [id, title]));

  // What a link asks for: it chooses, and the agents begin to learn.
  function follow() {
    const [name, asked] = location.hash.slice(1).split("?");
    if (name !== "playground") return;
    const given = new URLSearchParams(asked);
    if (given.get("system") in systems) systemChoice.value = given.get("system");
    for (const [what, one] of Object.entries({ xi, N })) {
      const at = one.values.indexOf(Number(given.get(what) ?? NaN));
      if (at >= 0) one.input.value = at;
    }
    deleted.checked = given.get("deleted") === "1";
    restart();
    place.scrollIntoView();
    if (!playing) play(true);
  }

  restart();
  follow();
  addEventListener("hashchange", follow);
})();
