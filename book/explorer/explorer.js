"use strict";
// The policy explorer: maps of policies, and the systems simulated under them.  It needs SPAQL_POLICIES (policies.js, which
// `python -m spaql.paper.book.explorer` writes), SPAQL_SYSTEMS (the files of systems/) and an element with the id
// "spaql-explorer".  Nothing is loaded from anywhere.

const spaqlExplorer = (() => {
  // -------------------------------------------------------------------------------------------------------------------
  // Systems: each has a file with its physics and its drawing; all else is in the data

  const known = (system) => SPAQL_SYSTEMS[system.family];
  const observe = (system, state) => known(system).observe(state);

  // Apply an action (the number of a discrete one); return the next state, the reward and the end.
  const step = (system, state, action) => known(system).step(system.constants, state, action);

  // -------------------------------------------------------------------------------------------------------------------
  // Policies: trees and networks.  In a leaf of a tree, `left` is the number of its row

  // Where a policy has a sine for a cosine, it asks for the angle in the place of the cosine.
  const asked = ({ sine }, observation) => (sine
    ? observation.map((value, i) => (sine[i] >= 0 ? Math.atan2(observation[sine[i]], value) : value))
    : observation);

  function find(policy, observation) {
    const seen = asked(policy, observation);
    let node = 0;
    while (policy.feature[node] >= 0) {
      const below = seen[policy.feature[node]] < policy.threshold[node];
      node = below ? policy.left[node] : policy.right[node];
    }
    return policy.left[node];
  }

  // The layers of a network: 32-bit floats, one row per input and a last one of biases.
  const decoded = new Map();
  function layersOf(policy) {
    if (!decoded.has(policy)) {
      decoded.set(policy, policy.layers.map((text) =>
        new Float32Array(Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer)));
    }
    return decoded.get(policy);
  }

  // What a network does: TRPO's has tanh between layers and bounds at the end, SAC's ReLU and a tanh over the bounds.
  function think(system, policy, observation) {
    const layers = layersOf(policy);
    const values = layers.reduce((inputs, layer, i) => {
      const width = layer.length / (inputs.length + 1);
      const outputs = Float64Array.from(layer.subarray(inputs.length * width));
      inputs.forEach((input, row) => {
        if (input !== 0) for (let j = 0; j < width; j += 1) outputs[j] += input * layer[row * width + j];
      });
      if (i === layers.length - 1) return outputs;
      return outputs.map(policy.squashed ? (value) => Math.max(0, value) : Math.tanh);
    }, observation);
    if (system.choices.length) return values.indexOf(Math.max(...values));
    const [low, high] = system.action.ends;
    return policy.squashed ? low + ((Math.tanh(values[0]) + 1) * (high - low)) / 2
      : Math.min(high, Math.max(low, values[0]));
  }

  const act = (system, policy, observation) =>
    (policy.layers ? think(system, policy, observation) : policy.action[find(policy, observation)]);
  const hasCells = (policy) => Boolean(policy?.q);

  // The bounds of the cell that holds an observation, [lowest, highest] for each variable that the policy asks for.
  function cellBounds(system, policy, observation) {
    const bounds = (policy.bounds ?? system.bounds).map((pair) => (pair ? [...pair] : [-Infinity, Infinity]));
    const seen = asked(policy, observation);
    let node = 0;
    while (policy.feature[node] >= 0) {
      const variable = policy.feature[node];
      const below = seen[variable] < policy.threshold[node];
      bounds[variable][below ? 1 : 0] = policy.threshold[node];
      node = below ? policy.left[node] : policy.right[node];
    }
    return bounds;
  }

  // -------------------------------------------------------------------------------------------------------------------
  // Runs: a system from a state on

  const newRun = (start) => ({ state: [...start], trail: [[...start]], earned: [], total: 0, over: false });

  function advanceRun(system, run, action) {
    const result = step(system, run.state, action);
    run.state = result.state;
    run.trail.push(result.state);
    run.earned.push(result.reward);
    run.total += result.reward;
    run.ended = result.over; // before its time
    run.over = result.over || run.earned.length >= system.steps;
  }

  // A whole episode; with `actions` these are applied, otherwise the policy's.
  function episode(system, policy, start, actions) {
    const run = newRun(start);
    const taken = [];
    while (!run.over && (!actions || taken.length < actions.length)) {
      taken.push(actions ? actions[taken.length] : act(system, policy, observe(system, run.state)));
      advanceRun(system, run, taken[taken.length - 1]);
    }
    return { states: run.trail, actions: taken, total: run.total };
  }

  // -------------------------------------------------------------------------------------------------------------------
  // Words and colours

  // Cividis: from dark blue to yellow, ever lighter, so that grey shows the same order.
  const STOPS = [[0, 34, 78], [66, 78, 108], [125, 124, 120], [186, 173, 108], [254, 232, 56]];
  // Of actions with both signs: blue, a neutral zero, orange.
  const SIGNED = [[11, 60, 125], [127, 178, 229], [244, 244, 244], [253, 184, 99], [230, 97, 1]];
  const BORDER = [150, 150, 150];

  const shadesOf = (low, high) => (low < 0 && high > 0 ? SIGNED : STOPS);

  function colour(share, stops) {
    const place = Math.min(1, Math.max(0, share)) * (stops.length - 1);
    const below = Math.min(stops.length - 2, Math.floor(place));
    return stops[below].map((part, i) => Math.round(part + (place - below) * (stops[below + 1][i] - part)));
  }

  function number(value, decimals = 2) {
    if (!Number.isFinite(value)) return value < 0 ? "−∞" : "∞";
    const text = value.toFixed(decimals);
    return Number(text) === 0 ? (0).toFixed(decimals) : text.replace("-", "−");
  }

  const withUnit = (text, unit) => (unit ? `${text} ${unit}` : text);
  const withSymbol = ({ symbol, unit }) => (unit ? `${symbol} (${unit})` : symbol);
  const physical = (system, action) => (system.choices.length ? system.choices[action] : action);

  // A value of a state variable, with as many digits as its range calls for.
  const inState = ({ ends, unit }, value) => withUnit(number(value, ends[1] - ends[0] < 0.2 ? 3 : 2), unit);
  const stateInWords = (system, where) =>
    system.state.map((v, i) => `${v.symbol} ${inState(v, where[i])}`).join(", ");

  function actionInWords(system, action) {
    const value = physical(system, action);
    const { unit } = system.action;
    const words = known(system).words?.(value);
    const signed = withUnit((value > 0 ? "+" : "") + number(value, system.choices.length ? 0 : 2), unit);
    return words && unit ? `${words}, ${signed}` : words ?? signed;
  }

  const nameOf = ({ algorithm, made }) => `${algorithm}, ${made}`;
  const sized = ({ weights, leaves }) =>
    (weights ? `${weights.toLocaleString("en")} weights` : `${leaves.toLocaleString("en")} leaves`);

  // What a policy is, how it was made and what it earns.
  function policyInWords(system, policy) {
    return `${nameOf(policy)}: ${policy.origin}. ${sized(policy)}; mean return `
      + `${number(policy.reward, known(system).decimals)} over ${policy.episodes.toLocaleString("en")} fresh episodes.`;
  }

  // What colours show: a share between 0 and 1 for each row of a tree, and the words at the two ends.
  function shading(system, policy, what) {
    if (what === "action") {
      const { ends: [low, high], unit } = system.action;
      const digits = high - low < 2 ? 2 : 0;
      const ends = [low, high].map((end) => (!unit && known(system).words?.(end)) || withUnit(number(end, digits), unit));
      const shareOf = (action) => (physical(system, action) - low) / (high - low);
      return { shareOf, shares: policy.action?.map(shareOf), ends, stops: shadesOf(low, high) };
    }
    const values = what === "visits" ? policy.visits.map((v) => Math.log(Math.max(1, v))) : policy.q;
    const [low, high] = [Math.min(...values), Math.max(...values)];
    const ends = [Math.min(...policy[what]), Math.max(...policy[what])].map((end) => number(end, what === "q" ? 1 : 0));
    return { shares: values.map((v) => (high > low ? (v - low) / (high - low) : 0.5)), ends, stops: STOPS };
  }

  // -------------------------------------------------------------------------------------------------------------------
  // The page: one panel, or two side by side that run from the same start.  The picture comes first, then the map

  const STYLE = `
    .spaql { --ink: #1b1b1b; --soft: #eef0f3; --line: #8a8f98; --mark: #b3261e;
      color: var(--ink); font: 16px/1.45 system-ui, sans-serif; }
    @media (prefers-color-scheme: dark) { html:not([data-theme="light"]) .spaql {
      --ink: #ececec; --soft: #262a31; --line: #8a8f98; --mark: #ff8a80; } }
    html[data-theme="dark"] .spaql { --ink: #ececec; --soft: #262a31; --line: #8a8f98; --mark: #ff8a80; }
    .spaql * { box-sizing: border-box; }
    .spaql [hidden] { display: none !important; }
    .spaql .spaql-row { display: flex; flex-wrap: wrap; gap: 0.4rem 0.8rem; margin: 0.5rem 0; align-items: end; }
    .spaql label { display: flex; flex-direction: column; font-size: 0.9rem; min-width: 7rem; flex: 1 1 7rem; }
    .spaql label.broad { flex: 3 1 14rem; }
    .spaql label.check { flex: 0 1 auto; flex-direction: row; align-items: center; gap: 0.4rem; min-height: 2.75rem; }
    .spaql select, .spaql button { font: inherit; font-size: 0.85rem; color: var(--ink); background: var(--soft);
      min-height: 2.75rem; border: 1px solid var(--line); border-radius: 0.4rem; padding: 0.3rem 0.4rem;
      max-width: 100%; cursor: pointer; }
    .spaql button.play { background: var(--mark); color: var(--soft); border-color: var(--mark); font-weight: 600; }
    .spaql input[type=range] { width: 100%; min-height: 2.2rem; }
    .spaql .spaql-buttons { display: flex; flex-wrap: wrap; gap: 0.4rem; margin: 0.5rem 0; }
    .spaql .spaql-buttons > * { flex: 1 1 auto; white-space: nowrap; }
    .spaql .one, .spaql .both { display: grid; gap: 0 1rem; align-items: start; }
    .spaql .one { grid-template: "seen mapped" auto "bar mapped" 1fr "bar rest" auto "who who" auto "tree tree" auto
      / minmax(0, 1fr) minmax(0, 1fr); }
    .spaql .one .panel { display: contents; }
    .spaql .both { grid-template: repeat(6, auto) / minmax(0, 1fr) minmax(0, 1fr); }
    .spaql .both .panel { display: grid; grid-row: 1 / span 6; grid-template-rows: subgrid; align-items: start;
      grid-template-areas: "who" "seen" "bar" "mapped" "rest" "tree"; grid-column: 1; }
    .spaql .both .panel + .panel { grid-column: 2; }
    .spaql .both .bar { grid-area: 3 / 1 / 4 / -1; }
    .spaql .panel > * { min-width: 0; }
    .spaql .who { grid-area: who; margin: 0.3rem 0; font-size: 0.9rem; }
    .spaql .seen { grid-area: seen; }
    .spaql .mapped, .spaql .drive { grid-area: mapped; }
    .spaql .rest { grid-area: rest; }
    .spaql .bar { grid-area: bar; }
    .spaql details.tree { grid-area: tree; }
    .spaql canvas { width: 100%; display: block; border: 1px solid var(--line); border-radius: 0.3rem; }
    .spaql canvas.map { touch-action: pan-y; cursor: crosshair; }
    .spaql .axes { display: grid; grid-template-columns: auto 1fr; gap: 0.2rem 0.4rem; font-size: 0.85rem; }
    .spaql .axes > div { display: flex; justify-content: space-between; font-variant-numeric: tabular-nums; }
    .spaql .axes > div.up { flex-direction: column; text-align: right; }
    .spaql .key { display: flex; align-items: center; gap: 0.5rem; font-size: 0.9rem; margin: 0.3rem 0; }
    .spaql .key span.bar-of-colours { flex: 1; min-width: 2rem; height: 0.8rem; border: 1px solid var(--line); }
    .spaql .drive { padding: 0.4rem; border: 1px solid var(--line); border-radius: 0.4rem; }
    .spaql .drive p { font-size: 0.85rem; margin: 0 0 0.3rem; }
    .spaql .drive button { touch-action: none; user-select: none; }
    .spaql .drive button[aria-pressed=true] { outline: 2px solid var(--mark); }
    .spaql :focus-visible { outline: 3px solid #2f7de1; outline-offset: 2px; }
    .spaql pre { overflow: auto; max-height: 24rem; padding: 0.6rem; background: var(--soft); color: var(--ink);
      font-size: 0.85rem; line-height: 1.35; border: none; }
    .spaql .score { font-size: 1.1rem; font-variant-numeric: tabular-nums; margin: 0.4rem 0; min-height: 1.5em; }
    .spaql .readout { font-size: 0.9rem; font-variant-numeric: tabular-nums; margin: 0.4rem 0; min-height: 4.4em; }
    .spaql p.help { font-size: 0.9rem; margin: 0.3rem 0; }
    .spaql summary { cursor: pointer; min-height: 2.2rem; }
    @media (max-width: 600px) {
      .spaql .one { grid-template: "seen" "bar" "mapped" "rest" "who" "tree" / minmax(0, 1fr); }
      .spaql .both { gap: 0 0.4rem; }
      .spaql .both .score { font-size: 0.9rem; min-height: 3em; }
      .spaql .both .who, .spaql .drive p { font-size: 0.8rem; }
      .spaql .both .readout, .spaql .both .up { display: none; }
      .spaql .both .axes { display: block; }
    }
  `;

  function element(parent, tag, attributes = {}, text = "") {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    if (text) made.textContent = text;
    parent.append(made);
    return made;
  }

  const choice = (parent, text, kind = "") => element(element(parent, "label", { class: kind }, text), "select");

  function fill(select, entries, chosen) {
    select.replaceChildren();
    for (const [value, text] of entries) element(select, "option", { value }, text);
    if (entries.some(([value]) => String(value) === String(chosen))) select.value = chosen;
  }

  // Where a value of a state variable is between the ends of its axis, and the value at such a share.
  const shareAt = ({ ends: [low, high] }, value) => (value - low) / (high - low);
  const valueAt = ({ ends: [low, high] }, share) => low + share * (high - low);

  function shareAlong(variable, value) {
    if (!variable.period) return shareAt(variable, value);
    const turned = (value - variable.ends[0]) % variable.period; // what turns round comes back on the other side
    return shareAt(variable, variable.ends[0] + (turned < 0 ? turned + variable.period : turned));
  }

  function inkOf(place) {
    const style = getComputedStyle(place);
    return ["--ink", "--mark"].map((name) => style.getPropertyValue(name).trim());
  }

  function drawScene(scene, place, system, state, action) {
    const context = scene.getContext("2d");
    const [ink, mark] = inkOf(place);
    const { width, height } = scene;
    context.clearRect(0, 0, width, height);
    context.strokeStyle = context.fillStyle = ink;
    context.lineCap = "round";
    const line = (x0, y0, x1, y1, thick) => {
      context.lineWidth = thick;
      context.beginPath();
      context.moveTo(x0, y0);
      context.lineTo(x1, y1);
      context.stroke();
    };
    const arrow = (x, y, side) => { // to the left (-1) or to the right (1) of something
      const tip = x + side * 78;
      line(x + side * 40, y, tip, y, 4);
      line(tip, y, tip - side * 12, y - 9, 4);
      line(tip, y, tip - side * 12, y + 9, 4);
    };
    known(system).draw({ context, width, height, ink, mark, line, arrow }, system, state, action);
    scene.setAttribute("aria-label", `${system.title} at ${stateInWords(system, state)}`);
  }

  const WINDOW = 500; // steps that the strips show of an episode without an end

  // The reward of every step so far, and the variable across, as strips.
  function drawStrip(strip, place, system, run, across) {
    const [earned, trail] = [run.earned.slice(-WINDOW), run.trail.slice(-WINDOW)];
    const context = strip.getContext("2d");
    const [ink, mark] = inkOf(place);
    const variable = system.state[across];
    const half = strip.height / 2;
    const size = Math.min(30, Math.max(20, (12 * strip.width) / (strip.clientWidth || strip.width)));
    const draw = (shares, top, colourOf, name) => {
      context.fillStyle = ink;
      context.font = `${size}px system-ui, sans-serif`;
      context.fillText(name, 6, top + size);
      context.strokeStyle = colourOf;
      context.lineWidth = 2;
      context.beginPath();
      shares.forEach((share, t) => {
        const x = (t / Math.min(system.steps, WINDOW)) * strip.width;
        context.lineTo(x, top + half - 4 - Math.min(1, Math.max(0, share)) * (half - 30));
      });
      context.stroke();
    };
    strip.style.visibility = earned.length ? "visible" : "hidden";
    context.clearRect(0, 0, strip.width, strip.height);
    const [lowest, highest] = [Math.min(0, ...earned), Math.max(0, ...earned)];
    const words = `reward of a step, ${number(lowest, 1)} to ${number(highest, 1)}`;
    draw(earned.map((reward) => (reward - lowest) / (highest - lowest || 1)), 0, mark, words);
    draw(trail.map((where) => shareAlong(variable, where[across])), half, ink, withSymbol(variable));
    strip.setAttribute("aria-label", `Rewards and ${variable.symbol} over ${run.earned.length} steps`);
  }

  // The colours of a map and the words at their ends; discrete actions have a block each.
  function drawKey(key, system, shade, what) {
    key.replaceChildren();
    const blocks = what === "action" ? system.choices.length : 0;
    const shares = blocks ? system.choices.map((_, i) => i / (blocks - 1)) : shade.stops.map((_, i, all) => i / (all.length - 1));
    const stops = shares.map((share, i) => `rgb(${colour(share, shade.stops)})`
      + (blocks ? ` ${(100 * i) / blocks}% ${(100 * (i + 1)) / blocks}%` : "")).join(",");
    element(key, "span", {}, shade.ends[0]);
    element(key, "span", { class: "bar-of-colours", style: `background: linear-gradient(90deg, ${stops})` });
    element(key, "span", {}, shade.ends[1]);
  }

  // The ends of an axis, with the variable's symbol and unit between them.
  function labelAxis(ticks, variable, ends) {
    const [first, last] = ends.map((end) => number(end, variable.ends[1] < 1 ? 2 : 1));
    ticks.replaceChildren();
    for (const text of [first, withSymbol(variable), last]) element(ticks, "span", {}, text);
  }

  // A reader at the controls: arrow keys, and buttons or a slider.  What is let go returns to nothing where a system has
  // such an action; elsewhere the last one stays.
  function makeDrive(parent, system) {
    const box = element(parent, "div", { class: "drive", tabindex: 0, role: "group", "aria-label": "You drive" });
    const right = known(system).right ?? 1; // the sign of what moves to the right
    const discrete = system.choices.length > 0;
    const [low, high] = system.action.ends;
    const order = system.choices.map((_, i) => i).sort((one, other) => right * (system.choices[one] - system.choices[other]));
    const [least, most] = discrete ? [order[0], order[order.length - 1]] : right > 0 ? [low, high] : [high, low];
    const rest = !discrete ? 0 : system.choices.includes(0) ? system.choices.indexOf(0) : null;
    const drive = { box, keys: { ArrowLeft: least, ArrowRight: most }, action: rest ?? least };
    element(box, "p", {}, `Hold the arrow keys ← →, or ${discrete ? "the buttons" : "move the slider"}`
      + (rest === null ? "; the last push stays." : "."));
    const buttons = new Map();
    let slider = null;
    const set = (action) => {
      drive.action = action;
      buttons.forEach((button, i) => button.setAttribute("aria-pressed", String(i === action)));
      if (slider) slider.value = right * action;
    };
    drive.release = () => { if (rest !== null) set(rest); };
    drive.hold = (key) => set(drive.keys[key]);
    if (!discrete) {
      slider = element(box, "input", { type: "range", min: Math.min(right * low, right * high),
        max: Math.max(right * low, right * high), step: (high - low) / 100, "aria-label": system.action.name });
      slider.addEventListener("input", () => { drive.action = right * Number(slider.value); });
    }
    const row = element(box, "div", { class: "spaql-buttons" });
    for (const action of order) {
      const button = element(row, "button", { type: "button" }, actionInWords(system, action));
      button.addEventListener("pointerdown", () => set(action));
      for (const end of ["pointerup", "pointerleave", "pointercancel"]) button.addEventListener(end, drive.release);
      button.addEventListener("click", (event) => { if (event.detail === 0) set(action); }); // by the keyboard
      buttons.set(action, button);
    }
    set(drive.action);
    return drive;
  }

  // A panel: the system under a policy, or under the reader's hand, with the policy's map.  `view` is what all panels
  // share: the system, where episodes start, the axes and colours of maps, and what a map's clicks and keys do.
  function makePanel(parent, place, view) {
    const box = element(parent, "div", { class: "panel" });
    const who = element(box, "p", { class: "who" });
    const seen = element(box, "div", { class: "seen" });
    const scene = element(seen, "canvas", { width: 480, height: 270, role: "img" });
    const score = element(seen, "div", { class: "score" });
    const mapped = element(box, "div", { class: "mapped" });
    const frame = element(mapped, "div", { class: "axes" });
    const upTicks = element(frame, "div", { class: "up", "aria-hidden": "true" });
    const map = element(frame, "canvas", { class: "map", width: 480, height: 360, tabindex: 0, role: "application" });
    element(frame, "div");
    const acrossTicks = element(frame, "div", { "aria-hidden": "true" });
    const key = element(mapped, "div", { class: "key" });
    const readout = element(mapped, "div", { class: "readout", role: "status", "aria-live": "polite", "aria-label": "The state" });
    const strip = element(element(box, "div", { class: "rest" }), "canvas", { class: "strip", width: 480, height: 130, role: "img" });
    const details = element(box, "details", { class: "tree" });
    const summary = element(details, "summary");
    const text = element(details, "pre", { tabindex: 0, "aria-label": "The policy as a decision tree" });

    const panel = { box, policy: null, drive: null, run: newRun([]) };
    let picture = null;
    let slice = []; // what it shows
    let painted = 0; // when
    let pointed = null; // a state the pointer is at

    // Show a policy; null for the reader.
    panel.take = (policy) => {
      panel.policy = policy;
      panel.drive?.box.remove();
      panel.drive = policy ? null : makeDrive(box, view.system);
      mapped.hidden = !policy;
      details.hidden = !policy?.text; // a network has none
      who.textContent = policy ? policyInWords(view.system, policy) : "You drive.";
      if (details.hidden) return;
      summary.textContent = `The tree that decides: ${sized(policy)}`;
      text.textContent = policy.text;
      details.open = policy.leaves <= 12;
    };

    // The state at a place of the map, in shares of its width and height; the other variables are where the system is.
    function stateAt(across, up) {
      const found = [...panel.run.state];
      found[view.across] = valueAt(view.system.state[view.across], across);
      found[view.up] = valueAt(view.system.state[view.up], up);
      return found;
    }

    function placeOf(where) {
      const share = (i) => shareAlong(view.system.state[i], where[i]);
      return [share(view.across) * map.width, (1 - share(view.up)) * map.height];
    }

    // Paint the map once for a policy, its axes and the other variables; `drawMap` puts marks upon it.
    panel.paint = (grain = 1) => {
      if (!panel.policy) return;
      const { system } = view;
      const { policy } = panel;
      const what = hasCells(policy) ? view.what : "action";
      const held = panel.run.state.filter((_, i) => i !== view.across && i !== view.up);
      const asks = [policy, what, view.across, view.up, grain, ...held];
      if (asks.length === slice.length && asks.every((part, i) => part === slice[i])) return;
      slice = asks;
      const shade = shading(system, policy, what);
      paintSlice(shade, grain);
      painted = performance.now();
      if (grain > 1) return;
      const [across, up] = [system.state[view.across], system.state[view.up]];
      labelAxis(acrossTicks, across, across.ends);
      labelAxis(upTicks, up, [...up.ends].reverse());
      drawKey(key, system, shade, what);
      map.setAttribute("aria-label", `Map of the policy over ${across.symbol} and ${up.symbol}; arrow keys move the state`);
    };

    // A coarser picture is painted faster: a network is asked at as many points as take a moment, and its continuous
    // actions are drawn in between.
    function paintSlice(shade, least) {
      const { system } = view;
      const { policy } = panel;
      const grain = policy.layers
        ? Math.max(least, Math.ceil(Math.sqrt((map.width * map.height * policy.weights) / 2e8))) : least;
      const [across, up] = [map.width, map.height].map((size) => Math.ceil(size / grain));
      const small = new ImageData(across, up);
      const rows = new Int32Array(across * up); // the leaf of each point
      const shades = shade.shares?.map((share) => [...colour(share, shade.stops), 255]);
      for (let j = 0, here = 0; j < up; j += 1) {
        for (let i = 0; i < across; i += 1, here += 1) {
          const seen = observe(system, stateAt((i + 0.5) / across, 1 - (j + 0.5) / up));
          if (policy.layers) {
            small.data.set([...colour(shade.shareOf(act(system, policy, seen)), shade.stops), 255], 4 * here);
            continue;
          }
          const row = rows[here] = find(policy, seen);
          const border = (i > 0 && row !== rows[here - 1]) || (j > 0 && row !== rows[here - across]);
          small.data.set(border && grain === 1 ? [...BORDER, 255] : shades[row], 4 * here);
        }
      }
      const [from, to] = [new OffscreenCanvas(across, up), new OffscreenCanvas(map.width, map.height)]
        .map((canvas) => canvas.getContext("2d"));
      from.putImageData(small, 0, 0);
      to.imageSmoothingEnabled = Boolean(policy.layers) && !system.choices.length;
      to.drawImage(from.canvas, 0, 0, map.width, map.height);
      picture = to.canvas;
    }

    function drawMap() {
      const context = map.getContext("2d");
      context.drawImage(picture, 0, 0);
      // White under black can be seen on every colour.
      const recent = panel.run.trail.slice(-40).map(placeOf);
      const [x, y] = placeOf(panel.run.state);
      for (const [style, width] of [["white", 3.5], ["black", 1.5]]) {
        context.strokeStyle = style;
        context.lineWidth = width;
        context.beginPath();
        recent.forEach(([across, up], i) => {
          const jump = i === 0 || Math.abs(across - recent[i - 1][0]) > map.width / 2;
          if (jump) context.moveTo(across, up);
          else context.lineTo(across, up);
        });
        context.moveTo(x - 12, y);
        context.lineTo(x + 12, y);
        context.moveTo(x, y - 12);
        context.lineTo(x, y + 12);
        context.stroke();
        context.beginPath();
        context.arc(x, y, 7, 0, 2 * Math.PI);
        context.stroke();
      }
      context.fillStyle = "#ff5c4d";
      context.fill();
    }

    // The state, or the one pointed at; the cell that holds it; and what the policy does there.
    function read() {
      const { system } = view;
      const { policy } = panel;
      const where = pointed ?? panel.run.state;
      const observation = observe(system, where);
      readout.replaceChildren();
      element(readout, "div", {}, `${pointed ? "Pointed at" : "At"} ${stateInWords(system, where)}: ${system.action.name} `
        + `${actionInWords(system, act(system, policy, observation))}`);
      if (policy.layers) return;
      const names = policy.asked ?? system.observed;
      const bounds = cellBounds(system, policy, observation).flatMap(([low, high], i) => (names[i] // none of a sine
        ? [`${names[i]} ${number(low, high - low < 0.1 ? 3 : 2)} to ${number(high, high - low < 0.1 ? 3 : 2)}`] : []));
      element(readout, "div", {}, `Its cell: ${bounds.join(", ")}`);
      if (!hasCells(policy)) return;
      const row = find(policy, observation);
      element(readout, "div", {}, `Q ${number(policy.q[row], 1)}, ${policy.visits[row].toLocaleString("en")} visits`);
    }

    panel.show = (action = 0) => {
      const { system } = view;
      const { run } = panel;
      const { decimals, ending } = known(system);
      const count = run.earned.length;
      drawScene(scene, place, system, run.state, action);
      drawStrip(strip, place, system, run, view.across);
      const end = run.over ? `, ${run.ended ? ending : "the end"}` : "";
      const limit = Number.isFinite(system.steps) ? ` of ${system.steps}` : "";
      score.textContent = `Step ${count}${limit}, return ${number(run.total, decimals)}${end}`;
      if (!panel.policy) return;
      drawMap();
      read();
    };

    panel.reset = () => {
      pointed = null;
      panel.run = newRun(view.start);
      panel.drive?.release();
      panel.paint(); // the slice is where the system is
      panel.show();
    };

    // Play a step, with a push after it: chance's, or the reader's.
    panel.advance = (push = 0) => {
      const { system } = view;
      if (panel.run.over) return;
      pointed = null;
      const action = panel.policy ? act(system, panel.policy, observe(system, panel.run.state)) : panel.drive.action;
      advanceRun(system, panel.run, action);
      if (push) panel.push(push);
      // The slice moves with the system; to paint it at every step would slow the system down.
      if (system.state.length > 2 && !view.playing) panel.paint();
      else if (system.state.length > 2 && performance.now() - painted > 500) panel.paint(4);
      panel.show(physical(system, action));
    };

    panel.push = (by) => { panel.run.state = known(view.system).push(panel.run.state, by); };

    panel.hush = (quiet) => readout.setAttribute("aria-live", quiet ? "off" : "polite"); // not every step is read out

    function shareOf(event) {
      const around = map.getBoundingClientRect();
      const share = (at, from, size) => Math.min(1, Math.max(0, (at - from) / size));
      return [share(event.clientX, around.left, around.width), 1 - share(event.clientY, around.top, around.height)];
    }

    map.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      map.focus({ preventScroll: true }); // or the place pointed at would move
      if (event.isTrusted) map.setPointerCapture(event.pointerId);
      view.put(stateAt(...shareOf(event)));
    });
    map.addEventListener("pointermove", (event) => {
      if (event.buttons) view.put(stateAt(...shareOf(event)));
      else if (!view.playing) {
        pointed = stateAt(...shareOf(event));
        read();
      }
    });
    map.addEventListener("pointerleave", () => {
      pointed = null;
      if (!view.playing) read();
    });
    map.addEventListener("keydown", (event) => {
      const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
      if (event.key in moves) {
        const size = event.shiftKey ? 0.1 : 0.01;
        const moved = (i, by) => Math.min(1, Math.max(0, shareAt(view.system.state[i], view.start[i]) + by * size));
        const [dx, dy] = moves[event.key];
        view.put(stateAt(moved(view.across, dx), moved(view.up, dy)));
      } else if (event.key === " " || event.key === "Enter") view.toggle();
      else return;
      event.preventDefault();
      event.stopPropagation();
    });
    return panel;
  }

  const HELP = "Point at a map to read a cell; click, tap or drag to put the system there. With a map in focus, arrow keys "
    + "move the start (with Shift further), Enter or space plays and pauses. A map shows two variables; the others are held "
    + "where the system is. Mass and length are multiples of what the policy was trained with; noise is a random push after "
    + "every step. Q is the agent's estimate of the return still to come; visits are how often training took this action "
    + "here, those of cells since split included (their colours are logarithmic).";

  function build(place, data) {
    place.replaceChildren();
    place.classList.add("spaql");
    element(place, "style", {}, STYLE);
    const button = (parent, text, pressed) => {
      const made = element(parent, "button", { type: "button" }, text);
      made.addEventListener("click", pressed);
      return made;
    };
    const view = { system: null, start: [], across: 0, up: 1, what: "action", playing: false, put, toggle };
    const inputs = {}; // all that the address of the page holds, by name

    const room = element(place, "div", { class: "one" });
    const panels = [makePanel(room, place, view), makePanel(room, place, view)];
    const below = element(room, "div", { class: "bar" });
    const bar = element(below, "div", { class: "spaql-buttons" });
    const top = element(below, "div", { class: "spaql-row" });
    inputs.system = choice(top, "System");
    inputs.policy = choice(top, "Policy", "broad");
    inputs.beside = choice(top, "Beside it", "broad");
    const playButton = button(bar, "Play", toggle);
    playButton.className = "play";
    button(bar, "Back to start", reset);
    const pushes = [["← push", -5], ["push →", 5]].map(([text, by]) => button(bar, text, () => {
      for (const panel of shown()) {
        panel.push(by);
        panel.show();
      }
    }));

    const more = element(place, "details", { class: "more" });
    element(more, "summary", {}, "More");
    const row = element(more, "div", { class: "spaql-row" });
    inputs.across = choice(row, "Across the map");
    inputs.up = choice(row, "Up the map");
    inputs.colour = choice(row, "Map colour");
    inputs.speed = choice(row, "Speed");
    fill(inputs.speed, [[0.25, "¼"], [0.5, "½"], [1, "real time"], [4, "4 ×"]], 1);
    const steps = element(more, "div", { class: "spaql-buttons" });
    button(steps, "One step", () => {
      pause();
      if (over()) reset();
      advance();
    });
    button(steps, "Random start", () => {
      const spread = ({ period }) => (period ? 1 : 0.15); // anywhere on a circle, else near
      put(view.system.state.map((variable) => valueAt(variable, 0.5 + spread(variable) * (Math.random() - 0.5))));
    });
    const sliders = element(more, "div", { class: "spaql-row" });
    const factors = element(more, "div", { class: "spaql-row" });
    for (const [name, [min, max, value]] of Object.entries({ mass: [0.5, 2, 1], length: [0.5, 2, 1], noise: [0, 2, 0] })) {
      const label = element(factors, "label");
      element(label, "span");
      inputs[name] = element(label, "input", { type: "range", min, max, step: 0.05, value });
    }
    const check = element(factors, "label", { class: "check" });
    inputs.endless = element(check, "input", { type: "checkbox" });
    check.append("no time limit");
    element(more, "p", { class: "help" }, HELP);

    let clock = 0;
    let settled = false; // once the page shows what its address asks for
    const shown = () => (inputs.beside.value === "none" ? panels.slice(0, 1) : panels);
    const over = () => shown().every((panel) => panel.run.over);
    const driving = () => shown().find((panel) => panel.drive)?.drive;
    const policyCalled = (system, name) => data.policies.find((p) => p.system === system && nameOf(p) === name) ?? null;

    // The system with the reader's mass and length, and as many steps as asked for.
    function vary() {
      const plain = data.systems[inputs.system.value];
      const { vary: varied, push } = known(plain);
      const values = Object.fromEntries(["mass", "length", "noise"].map((name) => [name, Number(inputs[name].value)]));
      const constants = varied ? varied(plain.constants, values) : plain.constants;
      view.system = { ...plain, constants, steps: inputs.endless.checked ? Infinity : plain.steps };
      view.noise = values.noise;
      for (const [name, value] of Object.entries(values)) {
        const label = inputs[name].parentElement;
        label.hidden = name === "noise" ? !push : !varied || !String(varied).includes(name);
        label.firstChild.textContent = name === "noise" ? `noise ${value}` : `${name} × ${value}`;
      }
      for (const one of pushes) one.hidden = !push;
    }

    function chooseSystem() {
      vary();
      const entries = data.policies.filter((p) => p.system === inputs.system.value)
        .map((p) => [nameOf(p), `${nameOf(p)} (${sized(p)}, ${number(p.reward, 0)})`]);
      fill(inputs.policy, entries);
      fill(inputs.beside, [["none", "nothing"], ["you", "you, at the controls"], ...entries],
        inputs.beside.value === "you" ? "you" : "none");
      const names = view.system.state.map((variable) => [variable.name, withSymbol(variable)]);
      fill(inputs.across, names, view.system.axes[0]);
      fill(inputs.up, names, view.system.axes[1]);
      view.start = [...known(view.system).start];
      choosePolicies();
    }

    function choosePolicies() {
      const system = inputs.system.value;
      const alone = inputs.beside.value === "none";
      if (inputs.beside.value === "you" && inputs.speed.value === "1") inputs.speed.value = "0.5"; // hands are slow
      panels[0].take(policyCalled(system, inputs.policy.value));
      panels[1].box.hidden = alone;
      room.className = alone ? "one" : "both";
      if (!alone) panels[1].take(policyCalled(system, inputs.beside.value)); // none: the reader drives
      const cells = shown().some(({ policy }) => hasCells(policy)) ? [["q", "Q"], ["visits", "visits"]] : [];
      fill(inputs.colour, [["action", view.system.action.name], ...cells], inputs.colour.value);
      chooseAxes();
    }

    function chooseAxes(changed) {
      if (inputs.across.value === inputs.up.value) {
        const other = changed === inputs.up ? inputs.across : inputs.up;
        other.value = view.system.state.find((variable) => variable.name !== other.value).name;
      }
      const index = (select) => view.system.state.findIndex((variable) => variable.name === select.value);
      [view.across, view.up, view.what] = [index(inputs.across), index(inputs.up), inputs.colour.value];
      makeSliders();
      reset();
    }

    // A slider for each variable that is on neither axis.
    function makeSliders() {
      sliders.replaceChildren();
      view.system.state.forEach((variable, i) => {
        if (i === view.across || i === view.up) return;
        const label = element(sliders, "label");
        const caption = element(label, "span");
        const [min, max] = variable.ends;
        const slider = element(label, "input", { type: "range", min, max, step: (max - min) / 200 });
        slider.value = view.start[i];
        const say = () => { caption.textContent = `${variable.symbol} = ${inState(variable, view.start[i])}`; };
        say();
        slider.addEventListener("input", () => {
          view.start[i] = Number(slider.value);
          say();
          reset();
        });
      });
    }

    function reset() {
      pause();
      for (const panel of shown()) panel.reset();
      writeAddress();
    }

    // A normal number, by Box and Muller.
    const normal = () => Math.sqrt(-2 * Math.log(1 - Math.random())) * Math.cos(2 * Math.PI * Math.random());

    function advance() {
      const push = view.noise ? view.noise * normal() : 0; // the same for both
      for (const panel of shown()) panel.advance(push);
      if (over()) pause();
    }

    function pause() {
      const repaint = view.playing && view.system.state.length > 2;
      view.playing = false;
      clearTimeout(clock);
      playButton.textContent = "Play";
      for (const panel of shown()) {
        panel.hush(false);
        if (repaint) panel.paint();
      }
    }

    function play() {
      if (over()) reset();
      view.playing = true;
      playButton.textContent = "Pause";
      driving()?.box.focus({ preventScroll: true }); // the arrow keys are the reader's
      for (const panel of shown()) panel.hush(true);
      const pace = (1000 * known(view.system).seconds(view.system.constants)) / Number(inputs.speed.value);
      let due = performance.now() + pace;
      const next = () => {
        if (!view.playing) return;
        advance();
        // A browser that fell behind does not catch up all at once.
        due = Math.max(due + pace, performance.now());
        clock = setTimeout(next, due - performance.now());
      };
      clock = setTimeout(next, pace);
    }

    function toggle() {
      if (!view.playing) return play();
      pause();
      for (const panel of shown()) panel.show();
    }

    function put(state) {
      view.start = state;
      makeSliders();
      reset();
    }

    // All that is chosen stands in the address, so that it can be shared.
    function writeAddress() {
      if (!settled) return;
      const values = Object.entries(inputs).map(([name, input]) =>
        [name, input.type === "checkbox" ? Number(input.checked) : input.value]);
      const start = view.start.map((value) => Number(value.toFixed(4))).join(" ");
      history.replaceState(null, "", `#${new URLSearchParams([...values, ["start", start]])}`);
    }

    function readAddress() {
      const given = new URLSearchParams(location.hash.slice(1));
      if (!(given.get("system") in data.systems)) return;
      for (const [name, input] of Object.entries(inputs)) {
        const value = given.get(name);
        if (value === null || (input.options && ![...input.options].some((option) => option.value === value))) continue;
        if (input.type === "checkbox") input.checked = value === "1";
        else input.value = value;
        input.dispatchEvent(new Event("input"));
      }
      const start = (given.get("start") ?? "").split(" ").map(Number);
      if (start.length === view.start.length && start.every(Number.isFinite)) put(start);
    }

    // Show what a button outside asks for: a system, a policy and one beside it, by their names.
    function present(asked) {
      inputs.system.value = asked.system;
      chooseSystem();
      inputs.policy.value = asked.policy;
      inputs.beside.value = asked.beside;
      choosePolicies();
      place.scrollIntoView({ behavior: "smooth", block: "start" });
      play();
    }

    // The arrow keys drive, unless they have something else to do where the focus is.
    const steers = (event) => event.key in (driving()?.keys ?? {}) && !event.target.matches("select, .spaql-row input");
    place.addEventListener("keydown", (event) => {
      if (event.key === " " && event.target === driving()?.box) toggle();
      else if (steers(event)) driving().hold(event.key);
      else return;
      event.preventDefault();
    });
    place.addEventListener("keyup", (event) => {
      if (steers(event)) driving().release();
    });

    inputs.system.addEventListener("input", chooseSystem);
    for (const name of ["policy", "beside"]) inputs[name].addEventListener("input", choosePolicies);
    for (const name of ["across", "up", "colour"]) inputs[name].addEventListener("input", () => chooseAxes(inputs[name]));
    for (const name of ["mass", "length", "noise", "endless"]) {
      inputs[name].addEventListener("input", () => {
        vary();
        reset();
      });
    }
    inputs.speed.addEventListener("input", () => {
      clearTimeout(clock);
      if (view.playing) play();
    });
    for (const one of document.querySelectorAll("[data-spaql-show]")) {
      one.addEventListener("click", () => present(JSON.parse(one.dataset.spaqlShow)));
    }
    // The book's switch between light and dark.
    new MutationObserver(() => shown().forEach((panel) => panel.show()))
      .observe(document.documentElement, { attributeFilter: ["data-theme"] });
    fill(inputs.system, Object.entries(data.systems).map(([id, { title }]) => [id, title]));
    chooseSystem();
    readAddress();
    settled = true;
  }

  const parts = { STYLE, BORDER, element, choice, fill, number, colour, shadesOf, drawScene, valueAt };
  return { observe, step, find, act, cellBounds, episode, build, parts };
})();

{
  const place = document.getElementById("spaql-explorer");
  if (place) spaqlExplorer.build(place, SPAQL_POLICIES);
}
